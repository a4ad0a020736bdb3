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
	why := "no other board is fitter"
	if _, _, paused := d.core.Paused(now); paused {
		why = "the group is paused"
	}
	text := fmt.Sprintf("%s leads on although it is %s, since %s", d.called(core.Leader), gradeText(grade), why)
	return []console.Problem{{Kind: console.ProblemLeaderUnfit, Board: core.Leader.String(), Text: text}}
}
