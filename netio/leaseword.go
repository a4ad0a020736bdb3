//go:build !arm || arm.7

package netio

import "sync/atomic"

// sharedWord is the 64-bit word of a lease. The daemon, its holder and the kernel
// share it, so it must change in one step, as the processor's atomic instructions do.
type sharedWord struct{ shared *uint64 }

func (w sharedWord) load() uint64 { return atomic.LoadUint64(w.shared) }

// swap sets a value if the word has the former one, and reports whether it had.
func (w sharedWord) swap(former, value uint64) bool {
	return atomic.CompareAndSwapUint64(w.shared, former, value)
}
