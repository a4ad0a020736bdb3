package record

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/wire"
)

// writer writes structs as words: "name=value" for each field that is not zero, and "name" for a flag. It finds the fields by
// reflection: whatever a core remembers is in its scene, without a list here that somebody could forget to extend.
type writer struct {
	text  []byte
	path  []byte // of the present field, with dots between names and the places in lists
	topic []byte // what all words of the present line are about; nil if it has words about anything
	known map[reflect.Type][]field
}

// field is one that is written.
type field struct {
	name  string // in lower case; "" if its fields are those of the struct that embeds it
	index int
}

// unwritten are fields that a core has by its configuration, needs for a moment only, or does not look at, and what stands in
// front of the words of a message.
var unwritten = map[string]bool{
	"Core.cfg": true, "Core.definition": true, "Core.timetable": true, "Core.effects": true,
	"Header.Sender": true, "Header.Type": true, "Hello.Keys": true, "Hello.Settings": true, "Message.Challenge": true, "Message.Proof": true,
}

func (w *writer) fieldsOf(t reflect.Type) []field {
	all, known := w.known[t]
	if !known {
		for i := range t.NumField() {
			f := t.Field(i)
			switch {
			case f.Anonymous && f.Type.Kind() == reflect.Struct:
				all = append(all, field{"", i})
			case !unwritten[t.Name()+"."+f.Name]:
				all = append(all, field{strings.ToLower(f.Name), i})
			}
		}
		w.known[t] = all
	}
	return all
}

// message writes who says what, and the fields of the header and of the body that belongs to the type.
func (w *writer) message(m *wire.Message) {
	body := m.Type.String()
	w.text = append(append(m.Sender.Append(w.text), ' '), body...)
	if m.Type == wire.TypeStart || m.Type == wire.TypeAck || m.Type == wire.TypeCollect {
		body = "round"
	}
	v := reflect.ValueOf(m).Elem()
	for _, f := range w.fieldsOf(v.Type()) {
		if f.name == "" || strings.EqualFold(f.name, body) {
			w.write(f.name, v.Field(f.index))
		}
	}
}

// write writes the words for a value. Pointers lead to parts of the core that are written anyway.
func (w *writer) write(name string, v reflect.Value) {
	before := len(w.path)
	if before > 0 && name != "" {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, name...)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func:
	case reflect.Interface: // an algorithm, or a failure detector
		w.write("", v.Elem().Elem())
	case reflect.Struct:
		for _, f := range w.fieldsOf(v.Type()) {
			w.write(f.name, v.Field(f.index))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.write(strconv.Itoa(i), v.Index(i))
		}
	case reflect.Map:
		for i, key := range v.MapKeys() {
			w.write(strconv.Itoa(i)+".key", key)
			w.write(strconv.Itoa(i)+".value", v.MapIndex(key))
		}
	default:
		if !v.IsZero() {
			w.word(v)
		}
	}
	w.path = w.path[:before]
}

// word writes a field. If it is about something else than the one before, it begins a line.
func (w *writer) word(v reflect.Value) {
	name := w.path
	if w.topic != nil {
		topic := topicOf(w.path)
		if !bytes.Equal(topic, w.topic) {
			w.topic = append(w.topic[:0], topic...)
			w.text = append(w.text, "\nstate"...)
			if len(topic) > 0 {
				w.text = append(append(w.text, ' '), topic...)
			}
			w.text = append(w.text, ':')
		}
		name = bytes.TrimPrefix(w.path[len(topic):], []byte{'.'})
	}
	w.text = append(append(w.text, ' '), name...)
	if v.Kind() != reflect.Bool {
		w.text = appendValue(append(w.text, '='), v)
	}
}

// topicOf returns the entry of a list that a path leads to or through, or the part of the core.
func topicOf(path []byte) []byte {
	topic := 0
	for i, c := range path {
		if c == '.' && (topic == 0 || '0' <= path[i-1] && path[i-1] <= '9') {
			topic = i
		}
	}
	return path[:topic]
}

func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Type() {
	case reflect.TypeFor[time.Duration]():
		return append(b, time.Duration(v.Int()).String()...)
	case reflect.TypeFor[wire.ID]():
		return wire.ID(v.Uint()).Append(b)
	case reflect.TypeFor[wire.Algorithm]():
		return append(b, wire.Algorithm(v.Uint()).String()...)
	case reflect.TypeFor[wire.Fingerprint]():
		return strconv.AppendUint(b, uint64(wire.Fingerprint(v.Uint()).Mark()), 10) // a core needs no more of it
	}
	switch v.Kind() {
	case reflect.String:
		return appendQuoted(b, v.String())
	case reflect.Float64:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	}
	return strconv.AppendUint(b, v.Uint(), 10)
}

// appendQuoted quotes a text so that it is one word, and no comment. strconv.Unquote reads it. Another board may have chosen the
// text, so nothing in it may steer a terminal, and strconv escapes all that is not printed.
func appendQuoted(b []byte, text string) []byte {
	begin := len(b)
	b = strconv.AppendQuote(b, text)
	for i := begin; i < len(b); i++ {
		if b[i] == ' ' || b[i] == '#' {
			b = slices.Replace(b, i, i+1, '\\', 'x', '2', '0'+b[i]-' ')
		}
	}
	return b
}
