//go:build arm && !arm.7

#include "textflag.h"

// func swapWord(former, value, shared *uint64) uint32
//
// The kernel's helper takes the three addresses in R0 to R2, returns in R0, and
// uses R3, LR and some bytes of the stack. It is never interrupted half done.
TEXT ·swapWord(SB),0,$64-16
	MOVW	former+0(FP), R0
	MOVW	value+4(FP), R1
	MOVW	shared+8(FP), R2
	MOVW	(R2), R3 // a page fault happens here, where Go can tell of it
	BL	kuserCmpxchg64<>(SB)
	MOVW	R0, ret+12(FP)
	RET

TEXT kuserCmpxchg64<>(SB),NOSPLIT|NOFRAME,$0
	MOVW	$0xffff0f60, R15
