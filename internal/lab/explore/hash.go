package explore

import (
	"encoding/binary"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"topdog/election"
	"topdog/wire"
)

// hasher sums up what decides how something goes on.
type hasher struct{ sum uint64 }

// number adds a number: one round of wyhash.
func (h *hasher) number(n uint64) {
	high, low := bits.Mul64(h.sum^n^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	h.sum = high ^ low ^ n
}

func (h *hasher) bytes(p unsafe.Pointer, size uintptr) {
	piece := unsafe.Slice((*byte)(p), size)
	empty := uint64(0)
	for ; len(piece) >= 8; piece = piece[8:] {
		if n := binary.NativeEndian.Uint64(piece); n != 0 {
			h.number(n + empty<<32)
			empty = 0
		} else {
			empty++
		}
	}
	n := uint64(len(piece))<<56 + empty<<32
	for i, b := range piece {
		n += uint64(b) << (8 * i)
	}
	h.number(n)
}

func (h *hasher) pointer(p unsafe.Pointer, t reflect.Type) {
	switch {
	case p == nil:
		h.number(0)
	case t == packetType:
		h.number((*packet)(p).sum)
	case t == effectType: // its message is in a packet
		e := (*election.Effect)(p)
		h.number(uint64(e.To)<<32 | uint64(e.Beat))
	case t == coreType: // the sum of a daemon has it
	default:
		h.value(p, t)
	}
}

func (h *hasher) value(at unsafe.Pointer, t reflect.Type) {
	l := layoutOf(t)
	for _, s := range l.plain {
		h.bytes(unsafe.Add(at, s.offset), s.size)
	}
	for _, l := range l.links {
		field := unsafe.Add(at, l.offset)
		switch l.typ.Kind() {
		case reflect.Pointer:
			h.pointer(*(*unsafe.Pointer)(field), l.typ.Elem())
		case reflect.Slice:
			v := reflect.NewAt(l.typ, field).Elem()
			h.number(uint64(v.Len()))
			for i := range v.Len() {
				h.value(v.Index(i).Addr().UnsafePointer(), l.typ.Elem())
			}
		case reflect.Interface:
			if v := reflect.NewAt(l.typ, field).Elem(); !v.IsNil() {
				h.pointer(v.Elem().UnsafePointer(), v.Elem().Type().Elem())
			}
		}
	}
}

// packet is a message and its sum. It never changes.
type packet struct {
	wire.Message
	sum uint64
}

func newPacket(m wire.Message) *packet {
	p := &packet{Message: m}
	var h hasher
	h.value(unsafe.Pointer(&p.Message), reflect.TypeFor[wire.Message]())
	p.sum = h.sum
	return p
}

var (
	packetType  = reflect.TypeFor[packet]()
	effectType  = reflect.TypeFor[election.Effect]()
	worldType   = reflect.TypeFor[world]()
	windowsType = reflect.TypeFor[[2][maxBoards]window]()
)

// hash sums up what decides how the world goes on.
func (w *world) hash() uint64 {
	for i := range w.boards[:w.size] {
		b := &w.boards[i]
		// It makes no difference when something may have happened already.
		b.toggle.at, b.daemon.at = max(b.toggle.at, w.now), max(b.daemon.at, w.now)
		b.daemon.sumUp()
	}
	var h hasher
	h.value(unsafe.Pointer(w), worldType)
	return h.sum
}

// sumUp brings the sum of the core and of what was heard up to date.
func (d *daemon) sumUp() {
	if d.core != nil && d.sum == 0 {
		var h hasher
		h.value(unsafe.Pointer(d.core), coreType)
		h.value(unsafe.Pointer(&d.windows), windowsType)
		d.sum = h.sum
	}
	d.handles = 0
	if slices.ContainsFunc(d.steps, func(s step) bool { return s.Kind == stepReceive || s.Kind == stepExpired }) {
		d.handles = d.read
	}
}
