//go:build arm && !arm.7

package netio

import "unsafe"

// sharedWord is the 64-bit word of a lease. The daemon, its holder and the kernel
// share it, so it must change in one step.
//
// On ARMv6, Go's package atomic cannot do that: it only locks out the other threads of the
// same process. The kernel can. It maps a page of helpers into every process
// (Documentation/arch/arm/kernel_user_helpers.rst), and since Linux 3.1 __kuser_cmpxchg64 is
// one of them. Go's runtime for ARMv6 needs that page as well, so it is always there.
type sharedWord struct{ shared *uint64 }

// swapWord calls __kuser_cmpxchg64. It returns 0 if the word had the former value, and now has the
// other one.
//
//go:noescape
func swapWord(former, value, shared *uint64) uint32

func (w sharedWord) load() uint64 {
	halves := (*[2]uint32)(unsafe.Pointer(w.shared))
	for {
		// If the two halves were read at different moments, the swap fails.
		value := *(*uint64)(unsafe.Pointer(&[2]uint32{halves[0], halves[1]}))
		if w.swap(value, value) {
			return value
		}
	}
}

// swap sets a value if the word has the former one, and reports whether it had.
func (w sharedWord) swap(former, value uint64) bool { return swapWord(&former, &value, w.shared) == 0 }
