package daemon

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// gradeText says for people how fit a board is to lead; nothing if it passes.
func gradeText(grade wire.Grade) string {
	switch grade {
	case wire.GradePassing:
		return ""
	case wire.GradeProbation:
		return "on probation"
	default:
		return grade.String()
	}
}

// unfitLeaderProblems tell people of a leader that gives the lead away as soon as it can.
func (d *Daemon) unfitLeaderProblems(core *election.Status, now time.Duration) []console.Problem {
	grade := core.Rank.Grade
	if core.Leader != d.group.self {
		if !d.hears(core.Leader, now) {
			return nil
		}
		p, _ := d.core.Peer(core.Leader)
		grade = p.Grade
	}
	if core.Leader == wire.Nobody || grade < wire.GradeDrained {
		return nil
	}
	text := fmt.Sprintf("%s leads on although it is %s, since no other board is fitter", d.called(core.Leader), gradeText(grade))
	return []console.Problem{{Kind: console.ProblemLeaderUnfit, Board: core.Leader.String(), Text: text}}
}
