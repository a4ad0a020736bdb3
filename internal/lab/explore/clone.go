package explore

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"reflect"
	"sync"
	"unsafe"

	"topdog/election"
	"topdog/wire"
)

// A core is copied and compared as it lies in memory, since the package election has no
// reason to offer either: nobody but this explorer needs them. Both walk the same layout.
// What a core points at is copied with it. It points into itself too (the timetable, and the
// board of its algorithm), so a pointer into what was copied becomes one into the copy.

// layout says where in a value of one type there is something besides plain bytes.
type layout struct {
	plain []segment
	links []link
}

// segment is a part of a value that has no pointers.
type segment struct{ offset, size uintptr }

// link is a part of a value that refers to something else.
type link struct {
	offset uintptr
	typ    reflect.Type
}

// unimportant are fields that never decide what a core does next: the effects of the last
// call, and what is counted and told for people. Two cores that differ in them alone are equal.
var unimportant = map[string]bool{"effects": true, "counts": true, "notices": true}

var layouts sync.Map // of reflect.Type

func layoutOf(t reflect.Type) *layout {
	if known, ok := layouts.Load(t); ok {
		return known.(*layout)
	}
	l := &layout{}
	l.add(0, t)
	layouts.Store(t, l)
	return l
}

func (l *layout) add(offset uintptr, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if t == coreType && unimportant[f.Name] {
				continue
			}
			l.add(offset+f.Offset, f.Type)
		}
	case reflect.Array:
		if t.Len() > long && len(layoutOf(t.Elem()).links) == 0 {
			// Its padding counts too, which at worst makes equal cores look different.
			l.plain = append(l.plain, segment{offset, t.Size()})
			return
		}
		for i := range t.Len() {
			l.add(offset+uintptr(i)*t.Elem().Size(), t.Elem())
		}
	case reflect.String, reflect.Func:
		// Names and algorithms are the same in all copies of one board.
	case reflect.Pointer, reflect.Slice, reflect.Interface:
		l.links = append(l.links, link{offset, t})
	case reflect.Map, reflect.Chan, reflect.UnsafePointer, reflect.Uintptr:
		panic(fmt.Sprintf("explore: a core has a %v, which cannot be copied", t))
	default:
		if n := len(l.plain); n > 0 && l.plain[n-1].offset+l.plain[n-1].size == offset {
			l.plain[n-1].size += t.Size()
			return
		}
		l.plain = append(l.plain, segment{offset, t.Size()})
	}
}

// long is the length of an array that is looked at as a whole.
const long = 64

var coreType = reflect.TypeFor[election.Core]()

// cloneCore returns a core that goes on as the given one would.
func cloneCore(c *election.Core) *election.Core {
	var k copier
	return (*election.Core)(k.pointer(unsafe.Pointer(c), coreType))
}

// copier copies one core.
type copier struct {
	done  [16]copied
	count int
}

// copied is a piece of memory and its copy.
type copied struct {
	from, to unsafe.Pointer
	size     uintptr
}

func (k *copier) pointer(p unsafe.Pointer, t reflect.Type) unsafe.Pointer {
	if p == nil {
		return nil
	}
	for _, c := range k.done[:k.count] {
		if at := uintptr(p) - uintptr(c.from); at < c.size {
			return unsafe.Add(c.to, at)
		}
	}
	fresh := reflect.New(t)
	fresh.Elem().Set(reflect.NewAt(t, p).Elem())
	to := fresh.UnsafePointer()
	k.done[k.count] = copied{p, to, t.Size()}
	k.count++
	if t == coreType {
		dropUnimportant(fresh.Elem())
	}
	k.fix(to, t)
	return to
}

// dropUnimportant makes the copy share nothing that its layout leaves out.
func dropUnimportant(core reflect.Value) {
	for name := range unimportant {
		f := core.FieldByName(name)
		v := reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
		switch f.Kind() {
		case reflect.Map:
			v.Set(reflect.MakeMap(f.Type()))
		case reflect.Slice:
			v.SetZero()
		}
	}
}

// fix replaces what a fresh copy shares with its original.
func (k *copier) fix(at unsafe.Pointer, t reflect.Type) {
	for _, l := range layoutOf(t).links {
		field := unsafe.Add(at, l.offset)
		switch l.typ.Kind() {
		case reflect.Pointer:
			p := (*unsafe.Pointer)(field)
			*p = k.pointer(*p, l.typ.Elem())
		case reflect.Slice:
			k.slice(reflect.NewAt(l.typ, field).Elem())
		case reflect.Interface:
			k.boxed(reflect.NewAt(l.typ, field).Elem())
		}
	}
}

func (k *copier) slice(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
		return
	}
	fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(fresh, v)
	v.Set(fresh)
	for i := range v.Len() {
		k.fix(v.Index(i).Addr().UnsafePointer(), v.Type().Elem())
	}
}

func (k *copier) boxed(v reflect.Value) {
	if v.IsNil() {
		return
	}
	inner := v.Elem()
	if inner.Kind() != reflect.Pointer {
		panic(fmt.Sprintf("explore: a core has a %v in an interface, which cannot be copied", inner.Type()))
	}
	elem := inner.Type().Elem()
	v.Set(reflect.NewAt(elem, k.pointer(inner.UnsafePointer(), elem)))
}

// hasher sums up what decides how a core goes on.
type hasher struct {
	sum   uint64
	seen  [16]copied
	count int
}

func (h *hasher) core(c *election.Core) {
	h.count = 0 // cores share nothing
	h.pointer(unsafe.Pointer(c), coreType)
}

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
	if p == nil {
		h.number(0)
		return
	}
	for i, c := range h.seen[:h.count] {
		if at := uintptr(p) - uintptr(c.from); at < c.size {
			h.number(uint64(i)<<32 | uint64(at))
			return
		}
	}
	h.seen[h.count] = copied{from: p, size: t.Size()}
	h.count++
	h.value(p, t)
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

var messageType = reflect.TypeFor[wire.Message]()

// packet is a message and its sum. It never changes.
type packet struct {
	wire.Message
	sum uint64
}

func newPacket(m wire.Message) *packet {
	p := &packet{Message: m}
	var h hasher
	h.value(unsafe.Pointer(&p.Message), messageType)
	p.sum = h.sum
	return p
}

// packet adds a message.
func (h *hasher) packet(p *packet) {
	if p != nil {
		h.number(p.sum)
	}
}
