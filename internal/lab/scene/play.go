package scene

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/console"
)

// Prompt is how long what must hold at once may take in virtual time: until the others have heard, and have acted.
const Prompt = 10 * time.Millisecond

// Stage is where scenes are played. Boards have the numbers from 1.
type Stage interface {
	// Address is that of a board.
	Address(board int) netip.Addr
	// Start starts a board with lines of configuration beside those of the stage.
	Start(board int, config []string) error
	// Set changes settings of a board that runs.
	Set(board int, config []string) error
	// Do does to a board what the word says.
	Do(board int, what string) error
	// Topdog gives topdog a command on a board, and returns what it says. It is an error if it refuses.
	Topdog(board int, args []string) (said string, err error)
	Status(board int) (console.Status, error)
	Logged(board int, text string) bool
	// Answers reports whether a board answers at the address.
	Answers(board int) bool
	// Holders are the boards whose kernels have the address.
	Holders() []int
	// Recover has a board lead again that should lead before the scene begins. Only a machine that is late needs it.
	Recover(board int)
	// Mark forgets what has happened to the address, and Seen tells what has happened since.
	Mark()
	Seen() (moves int, two bool)
	// Pass lets time pass. Until lets it pass until nothing is missing, and returns what is missing still if the time is over: where
	// time is virtual, that which is given.
	Pass(d time.Duration)
	Until(limit time.Duration, missing func() string) string
}

// settle is how long a group may take to find its leader.
const settle = 3 * time.Second

// player plays a scene.
type player struct {
	Stage
	boards map[int]*state
}

// state is what a scene has done to a board.
type state struct {
	runs, plugged, frozen bool
	config                []string
}

func play(s Stage, text string) error {
	lines, err := parse(text)
	if err != nil {
		return err
	}
	p := &player{s, map[int]*state{}}
	for _, l := range lines {
		if err := p.do(l); err != nil {
			return fmt.Errorf("line %d: %s: %w", l.number, l.text, err)
		}
		if _, two := p.Seen(); two {
			return fmt.Errorf("line %d: %s: two boards have held the address", l.number, l.text)
		}
	}
	return nil
}

func (p *player) do(l line) error {
	switch verb := l.words[0]; verb {
	case "boards":
		return p.begin(l)
	case "wait":
		d, err := time.ParseDuration(l.word(1))
		p.Pass(d)
		return err
	case "mark":
		p.Mark()
		return nil
	case "moves", "nobody":
		return p.want(l, 0)
	}
	board, err := number(l.words[0])
	if err != nil {
		return err
	}
	of := p.boards[board]
	if of == nil {
		of = &state{plugged: true}
		p.boards[board] = of
	}
	switch what := l.word(1); what {
	case "start":
		of.runs = true
		if len(l.words) > 2 {
			of.config = p.settings(l)
		}
		return p.Start(board, of.config)
	case "set":
		of.config = p.settings(l)
		return p.Set(board, of.config)
	case "stop", "kill":
		of.runs = false
		return p.Do(board, what)
	case "freeze", "thaw":
		of.frozen = what == "freeze"
		return p.Do(board, what)
	case "pull", "plug":
		of.plugged = what == "plug"
		return p.Do(board, what)
	case "lose-multicast", "get-multicast":
		return p.Do(board, what)
	case "topdog":
		return p.command(l, board)
	}
	return p.want(l, board)
}

var placeOfBoard = regexp.MustCompile(`\{(pi\d+)\}`)

// settings are those of a line, with the addresses of the boards that they name.
func (p *player) settings(l line) (settings []string) {
	for _, word := range l.words[2:] {
		settings = append(settings, placeOfBoard.ReplaceAllStringFunc(word, func(place string) string {
			board, _ := number(strings.Trim(place, "{}"))
			return p.Address(board).String()
		}))
	}
	return settings
}

// begin starts the boards. The one of the highest rank is the first, so that it leads whatever the machine does meanwhile.
func (p *player) begin(l line) error {
	last, err := strconv.Atoi(l.word(1))
	if err != nil {
		return err
	}
	first := last // that can lead
	if slices.Contains(l.words, `algorithm="strict"`) {
		first = last - last/2 // with a majority
	}
	for board := last; board > 0; board-- {
		if err := p.Start(board, p.settings(l)); err != nil {
			return err
		}
		p.boards[board] = &state{runs: true, plugged: true, config: p.settings(l)}
		if board > first {
			continue
		}
		lack := p.Until(settle, func() string {
			lack := p.followed(last)
			if lack != "" {
				p.Recover(last)
			}
			return lack
		})
		if lack != "" {
			return errors.New(lack)
		}
	}
	p.Mark()
	return nil
}

// command gives topdog a command, and holds what it says against the scene.
func (p *player) command(l line, board int) error {
	args := l.words[2:]
	end := slices.IndexFunc(args, func(w string) bool { return w == "says" || w == "refuses" })
	if end < 0 || len(l.quoted) != 1 {
		return errors.New(`there is no: says "…", or refuses "…"`)
	}
	said, err := p.Topdog(board, slices.Clone(args[:end]))
	if refuses := args[end] == "refuses"; refuses != (err != nil) {
		return fmt.Errorf("it says %q, %w", said, err)
	} else if refuses {
		said = err.Error()
	}
	if !strings.Contains(said, l.quoted[0]) {
		return fmt.Errorf("it says %q", said)
	}
	return nil
}

// want wants something to hold: within a time, or all the time.
func (p *player) want(l line, board int) error {
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
		p.Pass(look)
		if lack := p.missing(l, board); lack != "" {
			return fmt.Errorf("after %v: %s", passed+look, lack)
		}
	}
	return nil
}

// missing says what there is instead of what a line wants, or "".
func (p *player) missing(l line, board int) string {
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
		return p.followed(board)
	case "holds":
		return held(p.Holders(), board)
	case "logs":
		if !p.Logged(board, l.quoted[0]) {
			return "it has not logged that"
		}
		return ""
	}
	s, err := p.Status(board)
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

// missingIn is missing for what the status of a board says.
func (l line) missingIn(s console.Status) string {
	switch l.word(1) {
	case "is":
		if want := l.word(2); s.Role != want && s.Board.Grade != want {
			return fmt.Sprintf("it is a %s, %s", s.Role, s.Board.Grade)
		}
		return ""
	case "because":
		if len(s.Changes) == 0 || s.Changes[0].Reason != l.word(2) {
			return fmt.Sprintf("its changes are %+v", s.Changes)
		}
		return ""
	case "sees":
		for _, b := range s.Boards {
			if b.Name == l.word(2) && b.Grade == l.word(3) {
				return ""
			}
		}
		return fmt.Sprintf("it sees %+v", s.Boards)
	case "shows":
		// That a leader was late, on a busy machine, is nothing that a scene can wait to be over: the group remembers it for hours.
		problems := slices.DeleteFunc(slices.Clone(s.Problems), func(p console.Problem) bool {
			return string(p.Kind) == election.NoticePatience.Identifier()
		})
		if len(l.quoted) == 0 && len(problems) == 0 || len(l.quoted) > 0 && slices.ContainsFunc(problems, l.isIn) {
			return ""
		}
		return fmt.Sprintf("it shows %q", problems)
	}
	return "a scene has no such line"
}

// isIn reports whether a problem has all the words of the line in it.
func (l line) isIn(p console.Problem) bool {
	return !slices.ContainsFunc(l.quoted, func(q string) bool { return !strings.Contains(p.Text, q) })
}

// followed says why a board is not the one whom all follow, or "".
func (p *player) followed(leader int) string {
	for _, board := range slices.Sorted(maps.Keys(p.boards)) {
		of := p.boards[board]
		if !of.runs || !of.plugged || of.frozen {
			continue
		}
		s, err := p.Status(board)
		if err != nil {
			return err.Error()
		}
		if want := Name(leader); !s.Held() || s.LeaderName != want || s.Holding != (board == leader) {
			return fmt.Sprintf("%s is a %s, follows %q, and holds the address: %t", Name(board), s.Role, s.LeaderName, s.Holding)
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

// Name is what scenes call a board.
func Name(board int) string { return fmt.Sprint("pi", board) }

func number(name string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "pi"))
	if err != nil || !strings.HasPrefix(name, "pi") {
		return 0, fmt.Errorf("%q is neither a board nor something that a line begins with", name)
	}
	return n, nil
}

// word is one of the words of the line, or "".
func (l line) word(n int) string {
	if n < len(l.words) {
		return l.words[n]
	}
	return ""
}
