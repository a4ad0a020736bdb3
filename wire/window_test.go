package wire

import (
	"math/rand/v2"
	"testing"

	"topdog/internal/lab/assert"
)

func TestWindow(t *testing.T) {
	type step struct {
		sequence Sequence
		want     DropReason
	}
	for _, test := range []struct {
		name         string
		first, floor Sequence
		steps        []step
	}{
		{"in order", 1, 0, []step{{2, Accepted}, {3, Accepted}, {3, Duplicate}, {2, Duplicate}, {1, Duplicate}}},
		{"reordered", 5, 0, []step{{3, Accepted}, {4, Accepted}, {3, Duplicate}, {1, Accepted}}},
		{"edge of the window", 100, 0, []step{{37, Accepted}, {36, Replayed}, {37, Duplicate}}},
		{"edge moves", 100, 0, []step{{101, Accepted}, {37, Replayed}, {38, Accepted}}},
		{"jump of 63", 100, 0, []step{{163, Accepted}, {100, Duplicate}, {101, Accepted}}},
		{"jump of 64", 100, 0, []step{{164, Accepted}, {100, Replayed}, {101, Accepted}}},
		{"jump to the end", 1, 0, []step{{4294967295, Accepted}, {4294967295, Duplicate}, {1, Replayed}, {4294967294, Accepted}}},
		{"floor", 100, 100, []step{{99, Replayed}, {100, Duplicate}, {102, Accepted}, {101, Accepted}, {99, Replayed}}},
	} {
		w := NewWindow(test.first, test.floor)
		for i, s := range test.steps {
			assert.Is(t, s.want, w.Admit(s.sequence), "%s: step %d: %d", test.name, i, s.sequence)
		}
	}
}

// TestWindowAgainstSet compares the window with a set that remembers everything.
func TestWindowAgainstSet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		first := Sequence(1 + r.IntN(200))
		floor := Sequence(r.IntN(int(first) + 1))
		w, heard, top := NewWindow(first, floor), map[Sequence]bool{first: true}, first
		for range 300 {
			s := Sequence(1 + r.IntN(int(top)+70))
			want := Accepted
			switch {
			case s <= top && top-s >= 64, s < floor:
				want = Replayed
			case heard[s]:
				want = Duplicate
			}
			if got := w.Admit(s); got != want {
				t.Fatalf("first %d, floor %d, top %d: %d is %v, want %v", first, floor, top, s, got, want)
			}
			if want == Accepted {
				heard[s], top = true, max(top, s)
			}
		}
	}
}
