package corescene

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"topdog/wire"
)

// ReadMessage reads a message of which all is said: who says what, and fields. base is what the fields change; nil for nothing.
func ReadMessage(words []string, base func(sender wire.ID, kind wire.Type) *wire.Message, change func(m *wire.Message, word string) error) (*wire.Message, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("%q is neither a step nor a message, such as 3 HEARTBEAT leading", strings.Join(words, " "))
	}
	sender, err := Read[wire.ID](words[0])
	if err != nil {
		return nil, fmt.Errorf("%q is neither a step nor the id of a board", words[0])
	}
	kind := wire.Type(1)
	for kind.String() != words[1] {
		if kind++; kind > wire.TypePause {
			return nil, fmt.Errorf("there is no message %s", words[1])
		}
	}
	m := base(sender, kind)
	for _, word := range words[2:] {
		if err := change(m, word); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// SetWords sets what words say, "name=value" or "name" of a flag, in the part of a struct to which a path leads. It sets fields
// that are not exported too. target points to the struct. The dots of a path are between names, in lower case, and places in
// lists; the empty path leads to the struct itself. An entry of a map has a key and a value.
func SetWords(target any, path string, words []string) error {
	all := reflect.ValueOf(target).Elem()
	parent, _ := cutLast(path)
	if m, err := at(all, parent); err == nil && m.Kind() == reflect.Map {
		entry := reflect.New(reflect.StructOf([]reflect.StructField{
			{Name: "Key", Type: m.Type().Key()}, {Name: "Value", Type: m.Type().Elem()},
		}))
		if err := SetWords(entry.Interface(), "", words); err != nil {
			return err
		}
		if m.IsNil() {
			m.Set(reflect.MakeMap(m.Type()))
		}
		m.SetMapIndex(entry.Elem().Field(0), entry.Elem().Field(1))
		return nil
	}
	for _, word := range words {
		name, value, given := strings.Cut(word, "=")
		if !given {
			value = "true"
		}
		v, err := at(all, strings.Trim(path+"."+name, "."))
		if err == nil {
			err = parse(v, value)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
	}
	return nil
}

// Clear makes all zero that words can set, but for the fields that are named: words say only what is not zero.
func Clear(target any, but ...string) {
	v := reflect.ValueOf(target).Elem()
	for i := range v.NumField() {
		if !slices.Contains(but, v.Type().Field(i).Name) {
			clearValue(writable(v.Field(i)))
		}
	}
}

func clearValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Func: // an algorithm knows its core, and a roster its order
	case reflect.Interface:
		clearValue(v.Elem().Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			clearValue(writable(v.Field(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			clearValue(writable(v.Index(i)))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type())) // its owner may count on having one
	default:
		v.SetZero()
	}
}

func cutLast(path string) (before, last string) {
	i := max(0, strings.LastIndexByte(path, '.'))
	return path[:i], path[i:]
}

// at returns the variable to which a path leads.
func at(v reflect.Value, path string) (reflect.Value, error) {
	if path == "" {
		return v, nil
	}
	for name := range strings.SplitSeq(path, ".") {
		if v = step(v, name); !v.IsValid() {
			return v, fmt.Errorf("there is no %q in %q", name, path)
		}
	}
	return v, nil
}

// Read reads a value.
func Read[T any](text string) (value T, err error) {
	err = parse(reflect.ValueOf(&value).Elem(), text)
	return value, err
}

// step returns the field or the element of that name; the zero Value if there is none. A list becomes longer.
func step(v reflect.Value, name string) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		return writable(v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) }))
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= listMax {
		return reflect.Value{}
	}
	if v.Kind() == reflect.Slice {
		for v.Len() <= i {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
	} else if v.Kind() != reflect.Array || i >= v.Len() {
		return reflect.Value{}
	}
	return writable(v.Index(i))
}

// listMax bounds the lists of a text that somebody has sent. The longest has the heartbeats of a leader that were not answered.
const listMax = 4096

// writable returns a value of the same variable that may be set.
func writable(v reflect.Value) reflect.Value {
	if v.CanSet() || !v.IsValid() || !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// parse reads a value into a variable.
func parse(v reflect.Value, text string) (err error) {
	var n uint64
	switch into := v.Addr().Interface().(type) {
	case *time.Duration:
		*into, err = time.ParseDuration(text)
		return err
	case *wire.ID:
		if addr, bad := netip.ParseAddr(text); bad == nil && addr.Is4() {
			*into = wire.IDFromAddr(addr)
			return nil
		}
		text = strings.Replace(text, "nobody", "0", 1)
	case *wire.Algorithm:
		for *into = range wire.Algorithm(16) {
			if into.String() == text {
				return nil
			}
		}
		return fmt.Errorf("there is no such algorithm")
	case *wire.Fingerprint: // of which only the mark is written
		n, err = strconv.ParseUint(text, 10, 1)
		*into = wire.Fingerprint(n << 31)
		return err
	}
	switch v.Kind() {
	case reflect.Bool:
		var is bool
		is, err = strconv.ParseBool(text)
		v.SetBool(is)
	case reflect.String:
		text, err = strconv.Unquote(text)
		v.SetString(text)
	case reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		v.SetFloat(x)
	case reflect.Int, reflect.Int64:
		var i int64
		i, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err = strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
	default:
		err = fmt.Errorf("it has parts")
	}
	return err
}
