package explore

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"topdog/election"
)

// A world is copied and compared as it lies in memory, with its cores: nobody but this explorer needs either, so the package
// election has no reason to offer them. Both walk the same layout, without the fields with the tag hash:"-".
// What a world points at is copied with it. A core points into itself too (the timetable, and the
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
			if t == coreType && unimportant[f.Name] || f.Tag.Get("hash") == "-" {
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
		panic(fmt.Sprintf("explore: a world has a %v, which cannot be copied", t))
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

// clone returns a copy of a world that goes its own way.
func (w *world) clone() *world {
	var k copier
	return (*world)(k.pointer(unsafe.Pointer(w), worldType))
}

// copier copies one world.
type copier struct {
	done  [16 * maxBoards]copied
	count int
}

// copied is a piece of memory and its copy.
type copied struct {
	from, to unsafe.Pointer
	size     uintptr
}

func (k *copier) pointer(p unsafe.Pointer, t reflect.Type) unsafe.Pointer {
	if p == nil || t == packetType || t == effectType {
		return p // messages never change
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
		panic(fmt.Sprintf("explore: a world has a %v in an interface, which cannot be copied", inner.Type()))
	}
	elem := inner.Type().Elem()
	v.Set(reflect.NewAt(elem, k.pointer(inner.UnsafePointer(), elem)))
}
