package wire

import "fmt"

// Grade says how fit a board is to lead, by its own judgement. The smaller, the fitter.
type Grade uint8

// The grades. They are part of the protocol.
const (
	GradePassing   Grade = 0 // all is well, or nothing is checked
	GradeProbation Grade = 1 // all is well again, and was not a short time ago
	GradeDrained   Grade = 2 // somebody has asked this board to leave the lead to others
	GradeFailing   Grade = 3 // what this board is to serve does not work, or is not known to
)

// MaxGrade is the greatest grade: it has two bits on the wire.
const MaxGrade = GradeFailing

var gradeNames = [...]string{
	GradePassing:   "passing",
	GradeProbation: "probation",
	GradeDrained:   "drained",
	GradeFailing:   "failing",
}

func (g Grade) String() string {
	if g <= MaxGrade {
		return gradeNames[g]
	}
	return fmt.Sprintf("grade %d", uint8(g))
}
