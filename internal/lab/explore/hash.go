package explore

import (
	"reflect"
	"time"
	"unsafe"
)

// hash sums up what decides how the world goes on.
func (w *world) hash() uint64 {
	var h hasher
	h.number(uint64(w.now))
	h.number(uint64(w.faults)<<8 | uint64(w.resigned))
	h.flags(w.remarkable, w.both)
	if w.both {
		h.number(uint64(w.bothSince))
	}
	for i := range w.boards[:w.size] {
		w.boards[i].hash(&h, w.now)
		h.flags(w.mute[i], w.deaf[i])
		h.flags(w.cut[i][:]...)
	}
	for i := range w.flights {
		h.flight(&w.flights[i])
	}
	for i := range w.waits {
		w.waits[i].hash(&h)
	}
	for _, at := range w.instants {
		h.number(uint64(at))
	}
	return h.sum
}

func (h *hasher) flight(f *flight) {
	h.number(uint64(f.kind)<<16 | uint64(f.from)<<8 | uint64(f.to))
	h.number(uint64(f.at))
	h.number(uint64(f.askedAt))
	h.packet(f.message)
}

var windowsType = reflect.TypeFor[[maxBoards]window]()

func (b *board) hash(h *hasher, now time.Duration) {
	k, d, t := &b.kernel, &b.daemon, &b.toggle
	h.flags(k.off, k.address, k.closed, k.deleted, k.cable, d.core != nil, d.paused, d.held, d.armed, d.sent, d.overtaken, t.dead, t.paused)
	h.number(uint64(k.word))
	h.number(uint64(k.timer))
	h.number(uint64(max(t.at, now)))
	h.number(uint64(t.seen))
	h.number(uint64(t.step)<<16 | uint64(t.after)<<8 | uint64(t.resigns))
	h.number(uint64(b.reign.until))
	h.number(uint64(b.incarnation))
	h.number(uint64(b.clock.lost))
	for _, r := range k.inbox {
		h.number(uint64(r.kind)<<60 ^ uint64(r.askedAt))
		h.packet(r.message)
	}
	h.packet(t.plan)
	h.packet(t.release)
	if d.core == nil {
		return
	}
	if !d.summed {
		var own hasher
		own.core(d.core)
		own.value(unsafe.Pointer(&d.windows), windowsType)
		d.sum, d.summed = own.sum, true
	}
	h.number(d.sum)
	h.number(uint64(max(d.at, now)))
	h.number(uint64(d.late))
	h.number(uint64(d.wake))
	h.number(uint64(d.named))
	h.number(uint64(d.newest.heartbeat))
	h.number(uint64(d.set))
	h.number(uint64(d.sequence))
	for _, s := range d.steps {
		h.number(uint64(s.Kind))
		h.number(uint64(s.askedAt))
		if e := s.Effect; e != nil {
			h.number(uint64(e.To)<<32 | uint64(e.Beat))
		}
		h.packet(s.message)
		if s.Kind == stepReceive || s.Kind == stepExpired {
			h.number(uint64(d.read))
		}
	}
}

func (h *hasher) flags(flags ...bool) {
	var n uint64
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	h.number(n)
}
