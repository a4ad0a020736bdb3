package simpage

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"topdog/election/literature"
	"topdog/internal/lab/compare"
)

// comparison is how one algorithm replaces a failed leader of so many boards.
type comparison struct {
	Command string      `json:"command"` // repeats it
	Row     compare.Row `json:"row"`     // what the command prints with --json
}

// readComparison reads which row of the comparison somebody wants. A browser asks for one after the
// other, so it can show each as it comes, and nothing goes on when it has gone.
func readComparison(raw string) (*compare.Request, error) {
	q, err := readQuery(raw, "algorithm", "boards")
	if err != nil {
		return nil, err
	}
	name, boards := literature.Algorithms()[0], compare.DefaultBoards[0]
	if err := q.word(&name, "algorithm", literature.Algorithms()); err != nil {
		return nil, err
	}
	if err := q.number(&boards, "boards", minBoards, slices.Max(compare.DefaultBoards)); err != nil {
		return nil, err
	}
	if !slices.Contains(compare.DefaultBoards, boards) {
		return nil, badQuery(fmt.Sprintf("there are: %v", compare.DefaultBoards), "boards: groups of %d are not compared", boards)
	}
	r := compare.NewRequest()
	r.Algorithms, r.Boards = []string{name}, []int{boards}
	return r, nil
}

// measure measures it.
func measure(ctx context.Context, r *compare.Request) (*comparison, error) {
	rows, err := r.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &comparison{
		Command: "topdog sim compare --algorithms " + r.Algorithms[0] + " --boards " + strconv.Itoa(r.Boards[0]),
		Row:     rows[0],
	}, nil
}
