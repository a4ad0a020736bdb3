package demo

import (
	"math/rand/v2"
	"sync/atomic"
)

// loss is a share of packets that are lost by chance. The zero value loses none.
type loss struct{ parts atomic.Uint32 }

// lossParts is the granularity of a share.
const lossParts = 1_000_000

func (l *loss) set(share float64) { l.parts.Store(uint32(share * lossParts)) }

// draw says whether the next packet is lost.
func (l *loss) draw() bool {
	parts := l.parts.Load()
	return parts > 0 && rand.Uint32N(lossParts) < parts
}
