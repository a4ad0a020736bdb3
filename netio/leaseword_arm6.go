//go:build arm && !arm.7

package netio

import "unsafe"

// sharedWord is the 64-bit word that is the lease. The daemon, its holder and the kernel
// share it, so it must change in one step.
//
// A program for ARMv6 cannot let Go's package atomic do that. It locks out the threads of
// its own process, and no other one. So the kernel is asked, which knows the processor: it
// maps a page of helpers into every process (Documentation/arch/arm/kernel_user_helpers.rst).
// __kuser_cmpxchg64 is one of them since Linux 3.1. Go's own runtime for ARMv6 needs that page
// as well, so it is always there.
type sharedWord struct{ shared *uint64 }

// swapWord calls __kuser_cmpxchg64. It returns 0 if the word had the former value, and has the
// other one now.
//
//go:noescape
func swapWord(former, value, shared *uint64) uint32

func (w sharedWord) load() uint64 {
	halves := (*[2]uint32)(unsafe.Pointer(w.shared))
	for {
		// If the halves do not belong together, the word has not that value.
		value := *(*uint64)(unsafe.Pointer(&[2]uint32{halves[0], halves[1]}))
		if w.swap(value, value) {
			return value
		}
	}
}

// swap puts in a value if the word has the former one, and reports whether it had.
func (w sharedWord) swap(former, value uint64) bool { return swapWord(&former, &value, w.shared) == 0 }
