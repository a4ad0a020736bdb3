package console

import (
	"cmp"
	"fmt"
	"strings"
)

// addresses names the floating addresses, with the verb that fits them.
func (s *Status) addresses() (what, is, was string) {
	var bare []string
	for _, a := range s.Addresses {
		a, _, _ = strings.Cut(a, "/")
		bare = append(bare, a)
	}
	switch n := len(bare); {
	case n == 0:
		return "the address", "is", "was"
	case n == 1:
		return bare[0], "is", "was"
	case n <= 3:
		return list(bare), "are", "were"
	default:
		return fmt.Sprintf("%s and %d more", bare[0], n-1), "are", "were"
	}
}

// list joins words as a sentence does.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// holderName is fullName, and says when this very board is meant.
func (s *Status) holderName(id string) string {
	if id != "" && id == s.Board.ID {
		return "this board, " + s.fullName(id, s.Board.Name)
	}
	return s.fullName(id, "")
}

// fullName is a board as "pi2 (192.168.1.12)", with whatever of it is known.
func (s *Status) fullName(id, name string) string {
	name = s.shortName(id, name)
	address := id
	if b := s.board(id); b != nil && b.Address != "" {
		address = b.Address
	}
	if name == address || address == "" {
		return name
	}
	return name + " (" + address + ")"
}

// shortName is the name of a board, or its id.
func (s *Status) shortName(id, name string) string {
	if b := s.board(id); b != nil {
		name = cmp.Or(name, b.Name)
	}
	switch id {
	case "":
	case s.Leader:
		name = cmp.Or(name, s.LeaderName)
	case s.Heir:
		name = cmp.Or(name, s.HeirName)
	}
	return cmp.Or(name, id, "an unknown board")
}
