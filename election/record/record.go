// Package record keeps what one core was told lately, and what it did then, as text in memory. The text is a scene: it
// begins with the state of the core, so another core can be given that state and told the same, and must do the same.
package record

import (
	"cmp"
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
	writer // of the present segment

	kept    [segments]segment
	present *segment         // nil if there is none yet
	core    *election.Core   // whose that is
	full    int              // how long it may become
	last    election.Instant // when a core was told something last
}

type segment struct {
	text   []byte
	number int  // counts segments; 0 is none
	moved  bool // a role or a leader has changed
}

// New returns an empty recording.
func New() *Recording { return &Recording{writer: writer{known: map[reflect.Type][]field{}}} }

// Text returns what is kept: a scene for each segment, the oldest first.
func (r *Recording) Text() (text []byte) {
	if r.present == nil {
		return nil
	}
	r.present.text = r.text
	all := r.kept // a copy, which is sorted
	slices.SortFunc(all[:], func(a, b segment) int { return cmp.Compare(a.number, b.number) })
	for _, s := range all {
		text = append(text, s.text...)
	}
	return appendIs(text, r.core)
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
	r.text = append(append(append(r.text, "at "...), now.String()...), ": "...)
}

// begin begins a segment with the state of a core.
func (r *Recording) begin(core *election.Core, now election.Instant) {
	number := 1
	if r.present != nil {
		number += r.present.number
		r.present.text = appendIs(r.text, r.core)
	}
	s := r.replaced()
	if cap(s.text) == 0 {
		s.text = make([]byte, 0, segmentSize+segmentSize/8)
	}
	*s = segment{text: s.text[:0], number: number}
	r.present, r.core = s, core
	r.text = append(append(append(s.text, "\n== from "...), now.String()...), " on\nrecorded"...)
	v := reflect.ValueOf(core).Elem()
	r.inLine = true
	r.write("", v.FieldByName("cfg"))
	r.inLine, r.topic = false, append(r.topic[:0], '.') // which nothing is about
	r.write("", v)
	r.text = append(r.text, '\n')
	r.full = max(segmentSize, 2*len(r.text)) // the state of a very large group is long
}

// replaced returns the segment that a new one replaces.
func (r *Recording) replaced() (oldest *segment) {
	for i := range r.kept {
		s := &r.kept[i]
		if s != r.present && (oldest == nil || oldest.moved && !s.moved || oldest.moved == s.moved && s.number < oldest.number) {
			oldest = s
		}
	}
	return oldest
}
