package cluster

import (
	"slices"

	"topdog/election"
	"topdog/internal/console"
	"topdog/internal/lab/scene"
)

// StateOf is what scenes want to know of what a board says of itself.
func StateOf(s console.Status) scene.State {
	state := scene.State{Role: s.Role, Grade: s.Board.Grade, Holding: s.Holding, Sees: map[string]string{}, Problems: []string{}}
	if s.Held() {
		state.Leader = s.LeaderName
	}
	if len(s.Changes) > 0 {
		state.Reason = s.Changes[0].Reason
	}
	for _, b := range s.Boards {
		state.Sees[b.Name] = b.Grade
	}
	// That a leader was late, on a busy machine, is nothing that a scene can wait to be over: the group remembers it for hours.
	for _, p := range slices.DeleteFunc(slices.Clone(s.Problems), func(p console.Problem) bool {
		return string(p.Kind) == election.NoticePatience.Identifier()
	}) {
		state.Problems = append(state.Problems, p.Text)
	}
	return state
}
