package scene

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prompt is how long what must hold at once may take in virtual time: until the others have heard, and have acted.
const Prompt = 10 * time.Millisecond

// settle is how long a group may take to find its leader.
const settle = 3 * time.Second

// player plays a scene.
type player struct {
	Stage
	random *rand.Rand
	boards map[int]*state
	leader int // of the last agreement; 0 before
	force  []inForce
	began  time.Duration // the scene, or what is measured
	mayTwo bool          // two boards may hold the address since the last mark
}

// state is what a scene has done to a board.
type state struct {
	runs, plugged, frozen bool
	config                []string
}

// of returns what the scene has done to a board.
func (p *player) of(board int) *state {
	of := p.boards[board]
	if of == nil {
		of = &state{plugged: true}
		p.boards[board] = of
	}
	return of
}

// run starts the daemon of a board.
func (p *player) run(board int) error {
	of := p.of(board)
	of.runs, of.frozen = true, false
	return p.Start(board, of.config)
}

// Play plays the scene on a stage whose boards do not run yet, unless they are told. What is drawn depends on the seed alone.
func (s *Scene) Play(stage Stage, seed uint64) error {
	return newPlayer(stage, seed).play(s.name, s.lines)
}

func newPlayer(stage Stage, seed uint64) *player {
	return &player{Stage: stage, random: rand.New(rand.NewPCG(seed, 0)), boards: map[int]*state{}, began: stage.Now()}
}

// Improvise returns what plays lines on a stage as they come, such as from a person who watches. An error is that of the stage.
func Improvise(stage Stage) (play func(text string) error) {
	p := newPlayer(stage, 0)
	return func(text string) error {
		l := line{text: text}
		if err := l.read(); err != nil {
			return err
		}
		return p.do(&l)
	}
}

func (p *player) play(name string, lines []line) error {
	for i := range lines {
		l := &lines[i]
		if err := p.repeat(name, l); err != nil {
			return err
		}
		if l.inner != nil {
			continue
		}
		if err := p.do(l); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", name, l.number, l.text, err)
		}
		if _, two := p.Seen(); two && !p.mayTwo {
			return fmt.Errorf("%s:%d: %s: two boards have held the address", name, l.number, l.text)
		}
	}
	return nil
}

func (p *player) repeat(name string, l *line) error {
	began := p.Now()
	for i := 0; i < l.times || p.Now()-began < l.long; i++ {
		before := p.Now()
		if err := p.play(name, l.inner); err != nil {
			return err
		}
		if l.times == 0 && p.Now() == before {
			return fmt.Errorf("%s:%d: %s: what is repeated takes no time", name, l.number, l.text)
		}
	}
	return nil
}

func (p *player) do(l *line) error {
	if l.at != nil {
		if d := p.began + l.at.Draw(p.random) - p.Now(); d > 0 {
			p.Pass(d)
		}
	}
	switch verb := l.words[0]; verb {
	case "boards":
		return p.startAll(l)
	case "agreed":
		return p.agree(l.word(1) == "anew")
	case "wait":
		r, err := readRange(l.word(1))
		if err == nil {
			p.Pass(r.Draw(p.random))
		}
		return err
	case "mark":
		p.mark()
		return nil
	case "two":
		p.mayTwo = true
		return nil
	case "measure", "measured":
		return p.measure(l)
	case "moves", "nobody":
		return p.want(l, 0)
	}
	if e, ok := p.Stage.(Extended); ok {
		if known, err := e.Line(l.words, l.quoted); known {
			return err
		}
	}
	if known, err := p.faultOfLAN(l); known {
		return err
	}
	boards, err := p.named(l.words[0])
	if err == nil && l.word(1) != "start" {
		err = p.exist(boards)
	}
	if err != nil {
		return err
	}
	if known, err := p.fault(l, target{boards: boards}); known {
		return err
	}
	if e, ok := p.Stage.(Equipped); ok {
		if known, err := e.Do(boards, l.within, l.words[1:], l.quoted); known {
			return err
		}
	}
	for _, board := range boards {
		if err := p.doOn(l, board); err != nil {
			return err
		}
	}
	return nil
}

// fault does what a line says if it begins or ends a fault.
func (p *player) fault(l *line, t target) (known bool, err error) {
	words := l.words[1:]
	if len(words) != 1 { // a start has settings
		return false, nil
	}
	if f := FaultNamed(words[0]); f != nil && f.Of == OfBoards {
		p.tell(l.said())
		return true, p.begin(f, t)
	}
	if ended := FaultsEnded(words[0]); len(ended) > 0 && ended[0].Of == OfBoards {
		p.tell(l.said())
		return true, p.end(ended, t)
	}
	return false, nil
}

// tell tells the stage what happens now, if it wants to know.
func (p *player) tell(what string) {
	if s, ok := p.Stage.(Attentive); ok {
		s.Happens(what)
	}
}

// said is the line without when it is due.
func (l *line) said() string { return strings.Join(l.words, " ") }

// faultOfLAN does what a line says if it begins or ends a fault of the LAN.
func (p *player) faultOfLAN(l *line) (known bool, err error) {
	if ended := FaultsEnded(l.words[0]); len(ended) > 0 && ended[0].Of != OfBoards {
		p.tell(l.said())
		return true, p.end(ended, target{})
	}
	f := FaultNamed(l.words[0])
	if f == nil || f.Of == OfBoards {
		return false, nil
	}
	var t target
	switch f.Of {
	case OfShare:
		t.share, err = ReadShare(l.word(1))
	case OfGroups, OfTwoGroups:
		t.groups, err = p.groups(strings.Join(l.words[1:], ""))
		if err == nil && f.Of == OfTwoGroups && len(t.groups) != 3 {
			err = errors.New("it needs two groups with a / between them")
		}
	}
	if err == nil {
		p.tell(l.said())
		err = p.begin(f, t)
	}
	return true, err
}

// groups reads groups of machines; the last one is of those that are in none.
func (p *player) groups(text string) (groups [][]int, err error) {
	rest := slices.Clone(p.Machines())
	for names := range strings.SplitSeq(text, "/") {
		group, err := p.named(names)
		if err == nil {
			err = p.exist(group)
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
		rest = slices.DeleteFunc(rest, func(n int) bool { return slices.Contains(group, n) })
	}
	return append(groups, rest), nil
}

// doOn does what a line says to a board that it names.
func (p *player) doOn(l *line, board int) error {
	of := p.of(board)
	switch l.word(1) {
	case "start":
		of.config = p.settings(l)
		return p.run(board)
	case "set":
		of.config = p.settings(l)
		if s, ok := p.Stage.(Configurable); ok {
			return s.Set(board, of.config)
		}
		return ErrCannot
	case "topdog":
		return p.command(l, board)
	}
	return p.want(l, board)
}

var placeOfBoard = regexp.MustCompile(`\{(pi\d+)\}`)

// settings are those of a line, with the addresses of the boards that they name.
func (p *player) settings(l *line) (settings []string) {
	for _, word := range l.words[2:] {
		settings = append(settings, placeOfBoard.ReplaceAllStringFunc(word, func(place string) string {
			board, err := number(strings.Trim(place, "{}"))
			if s, ok := p.Stage.(Configurable); ok && err == nil {
				return s.Address(board).String()
			}
			return place
		}))
	}
	return settings
}

// startAll starts the boards. The one of the highest rank is the first, so that it leads whatever the machine does meanwhile.
func (p *player) startAll(l *line) error {
	last, err := strconv.Atoi(l.word(1))
	if err != nil {
		return err
	}
	if l.word(2) == "run" {
		p.tell("start")
		for board := range last {
			if err := p.run(board + 1); err != nil {
				return err
			}
		}
		return nil
	}
	first := last // that can lead
	if slices.Contains(l.words, `algorithm="strict"`) {
		first = last - last/2 // with a majority
	}
	for board := last; board > 0; board-- {
		p.of(board).config = p.settings(l)
		if err := p.run(board); err != nil {
			return err
		}
		if board > first {
			continue
		}
		if lack := p.Until(settle, func() string {
			lack := p.followed(last)
			if s, ok := p.Stage.(Late); ok && lack != "" {
				s.Recover(last)
			}
			return lack
		}); lack != "" {
			return errors.New(lack)
		}
	}
	p.leader = last
	p.mark()
	return nil
}

func (p *player) mark() {
	p.mayTwo = false
	p.Mark()
}

// agree waits until all follow one leader, and not the one of the last time if they are to agree anew.
func (p *player) agree(anew bool) error {
	old := p.leader
	lack := p.Until(settle, func() string {
		holders := p.Holders()
		if len(holders) != 1 || anew && holders[0] == old {
			return fmt.Sprintf("boards %v hold the address", holders)
		}
		p.leader = holders[0]
		return p.followed(p.leader)
	})
	if lack != "" {
		return errors.New(lack)
	}
	return nil
}

func (p *player) measure(l *line) error {
	s, ok := p.Stage.(Measuring)
	switch {
	case !ok:
		return nil
	case l.words[0] == "measured":
		return s.Measured()
	case len(l.quoted) != 1 || len(l.words) != 2:
		return errors.New(`write: measure NAME "what it is"`)
	}
	p.began = p.Now()
	return s.Measure(l.words[1], l.quoted[0])
}

// command gives topdog a command, and holds what it says against the scene.
func (p *player) command(l *line, board int) error {
	s, ok := p.Stage.(Commandable)
	if !ok {
		return ErrCannot
	}
	args := l.words[2:]
	end := slices.IndexFunc(args, func(w string) bool { return w == "says" || w == "refuses" })
	if end < 0 || len(l.quoted) != 1 {
		return errors.New(`there is no: says "…", or refuses "…"`)
	}
	said, err := s.Topdog(board, slices.Clone(args[:end]))
	switch refuses := args[end] == "refuses"; {
	case refuses && err == nil:
		return fmt.Errorf("it says %q", said)
	case refuses:
		said = err.Error()
	case err != nil:
		return err
	}
	if !strings.Contains(said, l.quoted[0]) {
		return fmt.Errorf("it says %q", said)
	}
	return nil
}

// Name is what scenes call a machine.
func Name(n int) string {
	switch {
	case n > 0:
		return fmt.Sprint("pi", n)
	case n == Client:
		return "client"
	}
	return fmt.Sprint("machine", -n)
}

// number is what Name has named.
func number(name string) (int, error) {
	for prefix, sign := range map[string]int{"pi": 1, "machine": -1} {
		if digits, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.Atoi(digits); err == nil && n > 0 {
				return sign * n, nil
			}
		}
	}
	if name == Name(Client) {
		return Client, nil
	}
	return 0, fmt.Errorf("%q is neither a board nor something that a line begins with", name)
}

// exist says which of some machines there is not.
func (p *player) exist(machines []int) error {
	for _, n := range machines {
		if !slices.Contains(p.Machines(), n) {
			return fmt.Errorf("there is no %s", Name(n))
		}
	}
	return nil
}

// named are the boards that a line names.
func (p *player) named(text string) (boards []int, err error) {
	all := slices.Sorted(maps.Keys(p.boards))
	for name := range strings.SplitSeq(text, ",") {
		if s, ok := p.Stage.(Naming); ok {
			if some, known := s.Named(name); known {
				boards = append(boards, some...)
				continue
			}
		}
		switch name {
		case "all":
			boards = append(boards, all...)
		case "leader":
			if p.leader == 0 {
				return nil, errors.New("the boards have not agreed on a leader yet")
			}
			boards = append(boards, p.leader)
		case "others", "another":
			rest := slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n == p.leader })
			if name == "another" && len(rest) > 0 {
				rest = rest[:1]
			}
			boards = append(boards, rest...)
		default:
			n, err := number(name)
			if err != nil {
				return nil, err
			}
			boards = append(boards, n)
		}
	}
	return boards, nil
}
