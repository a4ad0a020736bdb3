package console

import (
	"testing"

	"topdog/internal/lab/assert"
)

// Which boards could take over, and why none can.
func TestSpares(t *testing.T) {
	board := func(id string, change func(*Board)) Board {
		b := Board{ID: id, Name: "pi" + id, Address: "10.0.0." + id, Priority: 100, Grade: gradePassing}
		if change != nil {
			change(&b)
		}
		return b
	}
	graded := func(grade string) func(*Board) { return func(b *Board) { b.Grade = grade } }
	const who = "no fit board could take over from pi1 (10.0.0.1): "
	for _, tc := range []struct {
		name   string
		boards []Board // besides the leader, which is 1, and this board, which is 2
		self   func(*Board)
		voters []Voter
		want   int
		why    string
	}{
		{"this board", nil, nil, nil, 1, ""},
		{"this board, on probation", nil, graded(gradeProbation), nil, 1, ""},
		{"this board fails", nil, graded(GradeFailing), nil, 0, who + "pi2 is failing"},
		{"this board never leads", nil, func(b *Board) { b.Priority = 0 }, nil, 0, who + "pi2 has the priority 0"},
		{"another one", []Board{board("3", nil)}, graded("drained"), nil, 1, ""},
		{"one failing, one drained", []Board{board("3", graded(GradeFailing))}, graded("drained"), nil, 0, who + "pi2 is drained, pi3 is failing"},
		{"one has left, one is silent", []Board{board("3", func(b *Board) { b.Gone = true }), board("4", func(b *Board) { b.Stale = true })}, graded("drained"), nil, 0,
			who + "pi2 is drained, pi3 has left, or was replaced, pi4 is not heard any more"},
		{"enough voters", nil, nil, []Voter{{ID: "1"}, {ID: "2"}, {ID: "3"}}, 1, ""},
		{"too few voters", nil, nil, []Voter{{ID: "1"}, {ID: "2"}, {ID: "3", Unheard: true}}, 0, who + "too few voters would be left without it"},
		{"one there twice", nil, nil, []Voter{{ID: "1"}, {ID: "2"}, {ID: "3", Twice: true}}, 0, who + "too few voters would be left without it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Status{Role: RoleFollower, Leader: "1", Board: board("2", tc.self), Voters: tc.voters}
			s.Board.Self = true
			s.Boards = append([]Board{board("1", nil), s.Board}, tc.boards...)
			spares := s.CountSpares()
			s.Spares = &spares
			assert.Is(t, tc.want, spares, "the spares")
			assert.Is(t, tc.why, s.NoSpare(), "why there is none")
		})
	}
	paused := Status{Role: RoleFollower, Leader: "1", Paused: true, Boards: []Board{board("1", nil), board("2", nil)}}
	if n := paused.CountSpares(); n != 0 {
		t.Errorf("while the group is paused, %d boards could take over", n)
	}
	if (&Status{Role: RoleFollower, Leader: "1"}).NoSpare() != "" {
		t.Error("it is known of a daemon that does not tell")
	}
}
