package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// column is a column of the table of boards.
type column struct {
	head  string
	right bool // aligned, as numbers are
	cell  func(*Status, *Board) string
	lines []string // the head, and then the cells of the boards
	width int
}

// columns are all columns, in the order in which they are shown.
var columns = []column{
	{head: "BOARD", cell: func(_ *Status, b *Board) string { return cmp.Or(b.Name, b.Address, b.ID, "unknown") }},
	{head: "ADDRESS", cell: func(_ *Status, b *Board) string { return cmp.Or(b.Address, "unknown") }},
	{head: "ID", cell: func(_ *Status, b *Board) string { return b.ID }},
	{head: "PRIORITY", right: true, cell: func(_ *Status, b *Board) string { return strconv.Itoa(b.Priority) }},
	{head: "SCORE", right: true, cell: scoreCell},
	{head: "ROLE", cell: gradedRole},
	{head: "HEARD", cell: heardCell},
	{head: "UP", cell: upCell},
}

// dropOrder is the order in which columns are left out if there is no room for all.
var dropOrder = []string{"UP", "PRIORITY", "SCORE", "ID", "ADDRESS"}

func scoreCell(_ *Status, b *Board) string {
	if b.Score == nil {
		return "unknown"
	}
	return strconv.FormatUint(uint64(*b.Score), 10)
}

// roleCell says what a board is now. The present role of a silent board is unknown. If a board follows another leader than
// this board does, the cell says so, unless the board names itself as the leader: then it has just resigned.
func roleCell(s *Status, b *Board) string {
	switch {
	case b.Gone:
		return "gone"
	case b.Stale:
		return "silent"
	case !b.Self && b.Role != RoleLeader && b.Following != "" && b.Following != b.ID && b.Following != s.Leader:
		return "follows " + s.shortName(b.Following, "")
	case b.Role == "":
		return "unknown"
	case b.Role == RoleLeader && !s.leads(b):
		return "was leader"
	default:
		return b.Role
	}
}

// gradedRole is roleCell, followed by how fit the board is to lead, unless it passes or that is unknown.
func gradedRole(s *Status, b *Board) string {
	role := roleCell(s, b)
	if !b.live() || b.GradeText == "" {
		return role
	}
	return role + ", " + b.GradeText
}

func heardCell(_ *Status, b *Board) string {
	switch {
	case b.Self:
		return "this board"
	case b.HeardMs == nil:
		return "unknown"
	default:
		return ago(*b.HeardMs)
	}
}

func upCell(_ *Status, b *Board) string {
	switch {
	case b.UpSeconds == nil:
		return "unknown"
	case !b.live():
		return "" // it may be down
	default:
		return span(*b.UpSeconds * 1000)
	}
}

// marks returns the two characters in front of a board. They say whether it is this board, and whether it has the
// address or is next.
func marks(s *Status, b *Board) string {
	self, rank := " ", " "
	if b.Self {
		self = "*"
	}
	switch {
	case !b.live(), s.Role == RoleIsolated: // what is known of it may be out of date
	case s.leads(b):
		rank = "●"
	case b.Role == RoleHeir || b.ID == s.Heir && b.ID != s.Leader && b.ID != "":
		rank = "→"
	}
	return self + rank
}

const marked = "   " // as wide as two marks and a blank

// tableOf returns the columns of the table. If they are too wide for the terminal, it drops columns first, and then narrows
// the widest, which mostly shortens long names.
func tableOf(s *Status, most int) []column {
	t := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return c.head == "ID" && !s.idsDiffer() || c.head == "SCORE" && s.ScoreFrom == ""
	})
	excess := len(marked) - len(between) - most
	for i := range t {
		c := &t[i]
		c.lines = []string{c.head}
		for j := range s.Boards {
			c.lines = append(c.lines, strings.TrimSpace(clean(c.cell(s, &s.Boards[j]))))
		}
		for _, text := range c.lines {
			c.width = max(c.width, width(text))
		}
		excess += c.width + len(between)
	}
	for _, head := range dropOrder {
		i := slices.IndexFunc(t, func(c column) bool { return c.head == head })
		if i >= 0 && excess > 0 {
			excess -= t[i].width + len(between)
			t = slices.Delete(t, i, i+1)
		}
	}
	for ; excess > 0; excess-- {
		widest := &t[0]
		for i := range t {
			if t[i].width > widest.width {
				widest = &t[i]
			}
		}
		widest.width--
	}
	return t
}

// boards adds the table of boards.
func (p *page) boards(s *Status) {
	if len(s.Boards) == 0 {
		return
	}
	p.line(plain, "")
	if s.Role == RoleIsolated {
		p.item(dim, "", "The boards as they were when this board last heard them:")
	}
	t := tableOf(s, p.width)
	for i := range len(s.Boards) + 1 {
		look, text := strong, marked
		if i > 0 {
			b := &s.Boards[i-1]
			look, text = boardStyle(s, b), marks(s, b)+" "
		}
		for _, c := range t {
			text += pad(truncate(c.lines[i], c.width), c.width, c.right) + between
		}
		p.line(look, text)
	}
}

// boardStyle returns the look of a board. A board whose present state is unknown is dim.
func boardStyle(s *Status, b *Board) style {
	switch {
	case !b.live(), s.Role == RoleIsolated && !b.Self:
		return dim
	case s.leads(b):
		return good
	default:
		return plain
	}
}

// idsDiffer reports whether some board has an id that is not its address.
func (s *Status) idsDiffer() bool {
	return slices.ContainsFunc(s.Boards, func(b Board) bool { return b.Address != "" && b.ID != b.Address })
}

// addresses names the floating addresses, and the verb that goes with them.
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
	case n <= maxAddresses:
		return list(bare), "are", "were"
	default:
		return fmt.Sprintf("%s and %d more", bare[0], n-1), "are", "were"
	}
}

// list joins words as in a sentence: "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// holderName is fullName, preceded by "this board" if it is this one.
func (s *Status) holderName(id string) string {
	if id != "" && id == s.Board.ID {
		return "this board, " + s.fullName(id, s.Board.Name)
	}
	return s.fullName(id, "")
}

// fullName returns a board as "pi2 (192.168.1.12)", or what is known of that.
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

// shortName returns the name of a board, or its id if the name is unknown.
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
