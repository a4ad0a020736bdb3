// Package record keeps what one core was told lately, and what it did then, as text in memory. The text is a scene: it
// begins with the state of the core, so another core can be given that state and told the same, and must do the same.
package record

import (
	"reflect"
	"slices"

	"topdog/election"
)

// A takeover needs one segment or two. A segment has a minute of heartbeats every 100 ms.
const (
	segments    = 4
	segmentSize = 96 << 10
)

// Recording is what was recorded, in a few segments. Each begins with the state of the core. A new one replaces the oldest in
// which neither a role nor a leader has changed, so what happens all the time does not push out what happens rarely.
type Recording struct {
	writer                // of the present segment
	moved  bool           // a role or a leader has changed in it
	core   *election.Core // whose it is; nil if there is none yet
	full   int            // how long it may become
	past   []segment      // the oldest first

	last election.Instant // when a core was told something last
}

// segment is one that is over.
type segment struct {
	text  []byte
	moved bool
}

// New returns an empty recording.
func New() *Recording { return &Recording{writer: writer{known: map[reflect.Type][]field{}}} }

// Text returns what is kept: a scene for each segment, the oldest first.
func (r *Recording) Text() (text []byte) {
	if r.core == nil {
		return nil
	}
	for _, s := range r.past {
		text = append(text, s.text...)
	}
	return appendIs(append(text, r.text...), r.core)
}

// appendIs says what a core is, as scenes do at their end.
func appendIs(text []byte, core *election.Core) []byte {
	text = append(append(append(text, "\t= "...), core.Role().String()...), " of "...)
	return append(core.Leader().Append(text), '\n')
}

// at begins the line of a call.
func (r *Recording) at(core *election.Core, now election.Instant) {
	r.last = max(r.last, now)
	if core != r.core || len(r.text) > r.full {
		r.begin(core, now)
	}
	r.text = append(append(append(r.text, "at "...), now.String()...), ':')
}

// begin begins a segment with the state of a core.
func (r *Recording) begin(core *election.Core, now election.Instant) {
	text := r.next()
	r.core, r.moved = core, false
	r.text = append(append(append(text, "\n== from "...), now.String()...), " on\nrecorded"...)
	v := reflect.ValueOf(core).Elem()
	r.write("", v.FieldByName("cfg"))
	r.topic = []byte{'.'} // which nothing is about
	r.write("", v)
	r.topic = nil
	r.text = append(r.text, '\n')
	r.full = max(segmentSize, 2*len(r.text)) // the state of a very large group is long
}

// next ends the present segment, and returns the memory of the next one.
func (r *Recording) next() (text []byte) {
	if len(r.past) == segments-1 {
		i := max(0, slices.IndexFunc(r.past, func(s segment) bool { return !s.moved }))
		text = r.past[i].text[:0]
		r.past = slices.Delete(r.past, i, i+1)
	} else {
		text = make([]byte, 0, segmentSize+segmentSize/8)
	}
	if r.core != nil {
		r.past = append(r.past, segment{appendIs(r.text, r.core), r.moved})
	}
	return text
}
