package scene

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// want wants something to hold: within a time, or all the time.
func (p *player) want(l *line, board int) error {
	limit := Prompt
	if l.within > 0 {
		limit = l.within
	}
	if l.lasts == 0 {
		if lack := p.Until(limit, func() string { return p.missing(l, board) }); lack != "" {
			return errors.New(lack)
		}
		return nil
	}
	const look = 20 * time.Millisecond
	for passed := time.Duration(0); passed < l.lasts; passed += look {
		before := p.Now()
		if p.Pass(look); p.Now() == before {
			return nil // whoever watches has had enough
		}
		if lack := p.missing(l, board); lack != "" {
			return fmt.Errorf("after %v: %s", passed+look, lack)
		}
	}
	return nil
}

// missing says what there is instead of what a line wants, or "".
func (p *player) missing(l *line, board int) string {
	switch l.words[0] {
	case "moves":
		if moves, _ := p.Seen(); strconv.Itoa(moves) != l.word(1) {
			return fmt.Sprintf("%d moves", moves)
		}
		return ""
	case "nobody":
		return held(p.Holders())
	}
	switch l.word(1) {
	case "leads":
		lack := p.followed(board)
		if lack == "" {
			p.leader = board
		}
		return lack
	case "holds":
		return held(p.Holders(), board)
	case "logs":
		if s, ok := p.Stage.(Logging); ok && (len(l.quoted) != 1 || !s.Logged(board, l.quoted[0])) {
			return "it has not logged that"
		}
		return ""
	}
	s, err := p.State(board)
	if err != nil {
		return err.Error()
	}
	return l.missingIn(s)
}

func held(got []int, want ...int) string {
	if !slices.Equal(got, want) {
		return fmt.Sprintf("boards %v hold the address", got)
	}
	return ""
}

// missingIn is missing for what a board says of itself.
func (l *line) missingIn(s State) string {
	switch l.word(1) {
	case "is":
		if want := l.word(2); s.Role != want && s.Grade != want {
			return fmt.Sprintf("it is a %s, %s", s.Role, s.Grade)
		}
		return ""
	case "because":
		if s.Reason != l.word(2) {
			return fmt.Sprintf("its last change was because %q", s.Reason)
		}
		return ""
	case "sees":
		if grade := s.Sees[l.word(2)]; grade == "" || grade != l.word(3) {
			return fmt.Sprintf("it sees %v", s.Sees)
		}
		return ""
	case "shows":
		if s.Problems == nil || len(l.quoted) == 0 && len(s.Problems) == 0 || len(l.quoted) > 0 && slices.ContainsFunc(s.Problems, l.isIn) {
			return ""
		}
		return fmt.Sprintf("it shows %q", s.Problems)
	}
	return "a scene has no such line"
}

// isIn reports whether a problem has all the words of the line in it.
func (l *line) isIn(problem string) bool {
	return !slices.ContainsFunc(l.quoted, func(q string) bool { return !strings.Contains(problem, q) })
}

// followed says why a board is not the one whom all follow, or "".
func (p *player) followed(leader int) string {
	for _, board := range slices.Sorted(maps.Keys(p.boards)) {
		of := p.boards[board]
		if !of.runs || !of.plugged || of.frozen {
			continue
		}
		s, err := p.State(board)
		if err != nil {
			return err.Error()
		}
		if want := Name(leader); s.Leader != want || s.Holding != (board == leader) {
			return fmt.Sprintf("%s is a %s, follows %q, and holds the address: %t", Name(board), s.Role, s.Leader, s.Holding)
		}
	}
	if lack := held(p.Holders(), leader); lack != "" {
		return lack
	}
	if !p.Answers(leader) {
		return Name(leader) + " does not answer at the address"
	}
	return ""
}
