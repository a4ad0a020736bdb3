package corescene

import (
	"errors"
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

// ReadMessage reads a message: who says what, and more. base is what the words behind that change. change changes what a word
// says, and reports whether it knows the word. What it does not know is of a field.
func ReadMessage(words []string, base func(sender wire.ID, kind wire.Type) *wire.Message, change func(m *wire.Message, name, value string) bool) (*wire.Message, error) {
	unknown := fmt.Errorf("%q is neither a step nor a message, such as 3 HEARTBEAT leading", strings.Join(words, " "))
	if len(words) < 2 {
		return nil, unknown
	}
	sender, err := Read[wire.ID](words[0])
	if err != nil {
		return nil, unknown
	}
	kind, err := Read[wire.Type](words[1])
	if err != nil {
		return nil, fmt.Errorf("there is no message %s", words[1])
	}
	m := base(sender, kind)
	for _, word := range words[2:] {
		if name, value, _ := strings.Cut(word, "="); change(m, name, value) {
			continue
		}
		if err := SetWords(m, "", []string{word}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// SetWords sets what words say, "name=value" or "name" of a flag, in the part of a struct to which a path leads. It sets fields
// that are not exported too. target points to the struct. The dots of a path are between names, in lower case, and places in
// lists; the empty path leads to the struct itself. An entry of a map has a key and a value.
func SetWords(target any, path string, words []string) error {
	part, err := at(reflect.ValueOf(target).Elem(), path)
	if err != nil {
		return err
	}
	if part.Kind() == reflect.Map {
		entry := reflect.New(reflect.StructOf([]reflect.StructField{
			{Name: "Key", Type: part.Type().Key()}, {Name: "Value", Type: part.Type().Elem()},
		}))
		err := SetWords(entry.Interface(), "", words)
		if part.IsNil() {
			part.Set(reflect.MakeMap(part.Type()))
		}
		part.SetMapIndex(entry.Elem().Field(0), entry.Elem().Field(1))
		return err
	}
	for _, word := range words {
		name, value, given := strings.Cut(word, "=")
		if !given {
			value = "true"
		}
		v, err := at(part, name)
		if err == nil {
			err = parse(v, value)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
	}
	return nil
}

// Clear makes all zero that words can set in a struct, but for the fields that are named: words say only what is not zero.
func Clear(v reflect.Value, but ...string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Func: // an algorithm knows its core, and a roster its order
	case reflect.Interface:
		Clear(v.Elem().Elem(), but...)
	case reflect.Struct:
		for i := range v.NumField() {
			if !slices.Contains(but, v.Type().Field(i).Name) {
				Clear(writable(v.Field(i)), but...)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			Clear(v.Index(i), but...)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type())) // its owner may count on having one
	default:
		v.SetZero()
	}
}

// at returns the variable to which a path leads, or the map of whose entries it leads to one. A list becomes longer.
func at(v reflect.Value, path string) (reflect.Value, error) {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' }) {
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		i, err := strconv.Atoi(name)
		place := err == nil && i >= 0 && i < listMax
		for place && v.Kind() == reflect.Slice && v.Len() <= i {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		switch {
		case v.Kind() == reflect.Map:
			return v, nil
		case v.Kind() == reflect.Struct:
			v = writable(v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) }))
		case place && (v.Kind() == reflect.Slice || v.Kind() == reflect.Array && i < v.Len()):
			v = v.Index(i)
		default:
			v = reflect.Value{}
		}
		if !v.IsValid() {
			return v, fmt.Errorf("there is no %q in %q", name, path)
		}
	}
	return v, nil
}

// listMax bounds the lists of a text that somebody has sent. The longest has the heartbeats of a leader that were not answered.
const listMax = 4096

// writable returns a field so that it may be set.
func writable(field reflect.Value) reflect.Value {
	if !field.CanAddr() {
		return field
	}
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

// Read reads a value.
func Read[T any](text string) (value T, err error) {
	err = parse(reflect.ValueOf(&value).Elem(), text)
	return value, err
}

// parse reads a value into a variable.
func parse(v reflect.Value, text string) (err error) {
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
	case *wire.Algorithm, *wire.Type: // which have names
		for n := range uint64(32) {
			if v.SetUint(n); fmt.Sprint(v) == text {
				return nil
			}
		}
		return errors.New("there is no such name")
	case *wire.Fingerprint: // of which only the mark is written
		mark, err := strconv.ParseUint(text, 10, 1)
		*into = wire.Fingerprint(mark << 31)
		return err
	case *string:
		*into, err = strconv.Unquote(text)
		return err
	}
	_, err = fmt.Sscanln(text, v.Addr().Interface())
	return err
}
