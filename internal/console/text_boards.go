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
	brief func(*Status, *Board) string // a shorter cell for narrow terminals; nil if there is none
}

// columns are all columns, in the order in which they are shown.
var columns = []column{
	{head: "BOARD", cell: func(_ *Status, b *Board) string { return cmp.Or(b.Name, "unknown") },
		brief: func(_ *Status, b *Board) string { return cmp.Or(b.Name, b.Address, b.ID) }},
	{head: "ADDRESS", cell: func(_ *Status, b *Board) string { return cmp.Or(b.Address, "unknown") }},
	{head: "ID", cell: func(_ *Status, b *Board) string { return b.ID }},
	{head: "PRIORITY", right: true, cell: func(_ *Status, b *Board) string { return strconv.Itoa(b.Priority) }},
	{head: "SCORE", right: true, cell: scoreCell},
	{head: "ROLE", cell: gradedRole, brief: roleCell},
	{head: "HEARD", cell: heardCell, brief: heardBrief},
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

// roleCell says what a board is now. It is not known what a silent board has become. A board that follows another
// leader than this one does is worth a word, unless it is the leader that it names itself: it has just resigned.
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

// gradedRole is roleCell, with how fit a board is to lead unless it passes or that is unknown.
func gradedRole(s *Status, b *Board) string {
	role := roleCell(s, b)
	if !b.live() || b.GradeText == "" {
		return role
	}
	return role + ", " + b.GradeText
}

const lastHeard = "last heard "

func heardCell(_ *Status, b *Board) string {
	switch {
	case b.Self:
		return "this board"
	case b.HeardMs == nil:
		return "unknown"
	case !b.live():
		return lastHeard + ago(*b.HeardMs)
	default:
		return ago(*b.HeardMs)
	}
}

func heardBrief(s *Status, b *Board) string {
	return strings.TrimPrefix(heardCell(s, b), lastHeard)
}

func upCell(_ *Status, b *Board) string {
	switch {
	case b.UpSeconds == nil:
		return "unknown"
	case !b.live():
		return "" // perhaps it is down
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
	case !b.live(), s.Role == RoleIsolated: // perhaps it had the address
	case s.leads(b):
		rank = "●"
	case b.Role == RoleHeir || b.ID == s.Heir && b.ID != s.Leader && b.ID != "":
		rank = "→"
	}
	return self + rank
}

// table is the table of boards.
type table struct {
	columns []column
	widths  []int
	rows    [][]string // the heads are the first
}

const (
	marksWidth = 3 // two marks and a blank
	spacing    = 2 // between two columns
)

func (t *table) total() int {
	n := marksWidth - spacing
	for _, w := range t.widths {
		n += spacing + w
	}
	return n
}

// fill computes the cells.
func (t *table) fill(s *Status, brief bool) {
	t.rows = [][]string{nil}
	t.widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		t.rows[0] = append(t.rows[0], c.head)
		t.widths[i] = width(c.head)
	}
	for j := range s.Boards {
		var row []string
		for i, c := range t.columns {
			cell := c.cell
			if brief && c.brief != nil {
				cell = c.brief
			}
			text := strings.TrimSpace(clean(cell(s, &s.Boards[j])))
			row = append(row, text)
			t.widths[i] = max(t.widths[i], width(text))
		}
		t.rows = append(t.rows, row)
	}
}

// drop leaves out a column.
func (t *table) drop(head string) {
	t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return c.head == head })
}

// boards adds the table of boards.
func (p *page) boards(s *Status) {
	if len(s.Boards) == 0 {
		return
	}
	p.line(plain, "")
	if s.Role == RoleIsolated {
		p.item(dim, "", 0, "The boards as they were when this board last heard them:")
	}
	shown := *s
	shown.Boards = s.Boards[:min(len(s.Boards), maxBoards)]
	t := fitTable(&shown, p.width)
	for j, row := range t.rows {
		look, text := strong, strings.Repeat(" ", marksWidth)
		if j > 0 {
			b := &shown.Boards[j-1]
			look, text = boardStyle(s, b), marks(s, b)+" "
		}
		for i, cell := range row {
			text += pad(truncate(cell, t.widths[i]), t.widths[i], t.columns[i].right)
			text += strings.Repeat(" ", spacing)
		}
		p.line(look, text)
	}
	if more := len(s.Boards) - len(shown.Boards); more > 0 {
		p.item(notice, "", 0, fmt.Sprintf("and %d more: topdog status --json", more))
	}
}

// fitTable returns the table of boards. If it is too wide for the terminal, it gets fewer columns and shorter cells,
// and in the end shorter names.
func fitTable(s *Status, most int) *table {
	t := &table{columns: columns}
	if !s.idsDiffer() {
		t.drop("ID")
	}
	if s.ScoreFrom == "" {
		t.drop("SCORE")
	}
	t.fill(s, false)
	for _, head := range dropOrder {
		if t.total() <= most {
			break
		}
		if head == "ADDRESS" { // without it, nameless boards are shown by it
			if t.fill(s, true); t.total() <= most {
				break
			}
		}
		t.drop(head)
		t.fill(s, head == "ADDRESS")
	}
	t.narrow(most)
	return t
}

// narrow takes room from the widest column until the table fits. Usually that shortens long names.
func (t *table) narrow(most int) {
	for t.total() > most {
		widest := 0
		for i, w := range t.widths {
			if w > t.widths[widest] {
				widest = i
			}
		}
		if t.widths[widest] <= 1 {
			return
		}
		t.widths[widest]--
	}
}

// boardStyle dims a board of which the present state is unknown.
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

// holderName is fullName, and says if it is this board.
func (s *Status) holderName(id string) string {
	if id != "" && id == s.Board.ID {
		return "this board, " + s.fullName(id, s.Board.Name)
	}
	return s.fullName(id, "")
}

// fullName returns a board as "pi2 (192.168.1.12)", or the part of that which is known.
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
