package observe

import (
	"testing"

	"topdog/internal/lab/assert"
)

// A board has answered for certain from when its first answer had come until the last question that it answered was sent.
func TestSpansOf(t *testing.T) {
	type answer struct{ board, asked, heard int } // ms
	for _, test := range []struct {
		name    string
		answers []answer
		want    []Span
	}{
		{"nobody", nil, nil},
		{"one answer", []answer{{1, 0, 1}}, []Span{}},
		{"one board", []answer{{1, 0, 1}, {1, 2, 3}, {1, 6, 7}}, []Span{held(1, 1, 6)}},
		{"a handover", []answer{{1, 0, 1}, {1, 2, 3}, {2, 4, 5}, {2, 6, 7}}, []Span{held(1, 1, 2), held(2, 5, 6)}},
		{"an answer that was long under way", []answer{{1, 0, 1}, {2, 2, 3}, {2, 4, 5}, {1, 2, 6}}, []Span{held(1, 1, 2), held(2, 3, 4)}},
		{"it went and came back", []answer{{1, 0, 1}, {1, 2, 3}, {1, 20, 21}, {1, 22, 23}}, []Span{held(1, 1, 2), held(1, 21, 22)}},
		{"two at a time", []answer{{1, 0, 1}, {2, 2, 3}, {1, 4, 5}, {2, 6, 7}}, []Span{held(1, 1, 4), held(2, 3, 6)}},
	} {
		var replies []Reply
		for _, a := range test.answers {
			replies = append(replies, Reply{a.board, at(a.asked), at(a.heard)})
		}
		assert.Equal(t, test.want, SpansOf(replies), "%s", test.name)
	}
}
