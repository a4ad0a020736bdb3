package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// stage plays scenes in the simulator (scene.Stage). A board is a core there, so its processes are one.
type stage struct {
	*Play
	ended  func() bool // the context has ended
	marked time.Duration
	said   string // what happens now
}

func (s *stage) board(n int) *sim.Board { return s.LAN.Board(strconv.Itoa(n)) }

// Machines are the boards.
func (s *stage) Machines() (all []int) {
	for n := range s.LAN.Boards() {
		all = append(all, n+1)
	}
	return all
}

// Start starts a board with settings that are those of the scenario otherwise.
func (s *stage) Start(n int, config []string) error {
	b := s.board(n)
	if b == nil {
		return fmt.Errorf("there is no %s, only 1 to %d", scene.Name(n), len(s.LAN.Boards()))
	}
	for _, line := range config {
		if err := configure(&b.Config, line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	if _, err := literature.NewCore(b.Config, 0); err != nil {
		return err
	}
	b.Start()
	return nil
}

// configure changes a setting by a line as it is in the configuration of a board.
func configure(c *election.Config, line string) (err error) {
	key, value, _ := strings.Cut(line, "=")
	text := strings.Trim(value, `"`)
	known := true
	switch key {
	case "algorithm":
		c.Algorithm, known = literature.AlgorithmNamed(text)
	case "heartbeat":
		c.Interval, err = time.ParseDuration(text)
	case "preempt":
		c.Preempt, err = strconv.ParseBool(text)
	case "priority":
		var n uint64
		n, err = strconv.ParseUint(text, 10, 8)
		c.Priority = uint8(n)
	case "voters":
		c.Voters = nil
		for name := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
			var n uint64
			n, err = strconv.ParseUint(strings.Trim(name, `"{pi}`), 10, 8)
			c.Voters = append(c.Voters, wire.ID(n))
		}
	default:
		known = false
	}
	if !known {
		err = scene.ErrCannot
	}
	return err
}

// Signal sends a signal to the process of a board.
func (s *stage) Signal(n int, to scene.Processes, signal scene.Signal) error {
	if to&scene.Daemon == 0 {
		return scene.ErrCannot
	}
	map[scene.Signal]func(*sim.Board){
		scene.Kill: (*sim.Board).Crash, scene.Terminate: (*sim.Board).Stop, scene.Freeze: (*sim.Board).Freeze, scene.Thaw: (*sim.Board).Thaw,
	}[signal](s.board(n))
	return nil
}

// Cable pulls the cable of a board, or puts it back.
func (s *stage) Cable(n int, in bool) error {
	if in {
		s.board(n).Plug()
	} else {
		s.board(n).Pull()
	}
	return nil
}

// Filter has the switch lose frames.
func (s *stage) Filter(filters []scene.Filter) error {
	s.LAN.Filter(filters, strings.ReplaceAll(s.said, "pi", "")) // a trace calls boards by their ids
	return nil
}

// Topdog carries out a command, as far as a core alone can.
func (s *stage) Topdog(n int, args []string) (said string, err error) {
	switch b := s.board(n); args[0] {
	case "resign":
		return "", b.Resign()
	case "unpause":
		return "", b.Unpause()
	}
	return "", scene.ErrCannot
}

// State is what a core says.
func (s *stage) State(n int) (state scene.State, err error) {
	b := s.board(n)
	status, runs := b.Status()
	if !runs {
		return state, fmt.Errorf("%s does not run", scene.Name(n))
	}
	state = scene.State{Role: b.Role().String(), Grade: b.Grade.String(), Holding: b.Answers(), Sees: map[string]string{}}
	if b.Leader() != wire.Nobody {
		state.Leader = scene.Name(int(b.Leader()))
	}
	for _, p := range status.Peers {
		state.Sees[p.Name] = p.Grade.String()
	}
	return state, nil
}

// Answers reports whether a board has the address.
func (s *stage) Answers(n int) bool { return s.board(n).Answers() }

// Holders are the boards that have the address.
func (s *stage) Holders() (holders []int) {
	for i, b := range s.LAN.Boards() {
		if b.Answers() {
			holders = append(holders, i+1)
		}
	}
	return holders
}

// Mark forgets what has happened to the address, and Seen tells what has happened since.
func (s *stage) Mark() { s.marked = s.LAN.Now() }

// Seen is how often the address has moved, and whether two boards have had it. A scenario shows what happens, also that.
func (s *stage) Seen() (moves int, two bool) {
	sum := s.LAN.Summarise(s.marked)
	return sum.Moves, s.Scenario.Judged && sum.Doubled > 0
}

// Now is the virtual time.
func (s *stage) Now() time.Duration { return s.LAN.Now() }

// Pass lets time pass until just before what is due then: what a scene does comes first.
func (s *stage) Pass(d time.Duration) { s.LAN.RunBefore(s.ended, d) }

// Until lets time pass until nothing is missing.
func (s *stage) Until(limit time.Duration, missing func() string) (lack string) {
	s.LAN.RunUntil(func() bool { lack = missing(); return lack == "" || s.ended() }, limit)
	return lack
}

// Happens begins to measure how the LAN recovers from something, and ends what was measured before.
func (s *stage) Happens(what string) {
	s.said = what
	n := len(s.watches)
	if n > 0 && s.watches[n-1].watch.Since() == s.LAN.Now() {
		s.watches[n-1].what = append(s.watches[n-1].what, what)
		return
	}
	if n > 0 {
		s.watches[n-1].watch.Stop()
	}
	if s.LAN.Now() >= s.From() {
		s.count()
		var holders []string
		for _, b := range s.LAN.Boards() {
			if b.Holding() {
				holders = append(holders, b.Label)
			}
		}
		s.watches = append(s.watches, watched{[]string{what}, strings.Join(holders, ", "), s.LAN.Watch()})
	}
}

// heartbeatWithin is for how long a scene waits for a heartbeat.
const heartbeatWithin = time.Minute

// Line does what only cores can do.
func (s *stage) Line(words, _ []string) (known bool, err error) {
	if len(words) != 2 || words[1] != noticeLine && words[1] != heartbeatLine {
		return false, nil
	}
	for name := range strings.SplitSeq(words[0], ",") {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "pi"))
		b := s.board(n)
		switch {
		case err != nil || b == nil:
			return true, fmt.Errorf("there is no board %s", name)
		case words[1] == noticeLine:
			s.Happens(name + " " + noticeLine)
			b.Suspect()
		case b.Holding() && b.Running() && !b.Frozen():
			arrived := false
			b.AfterHeartbeat(func() { arrived = true })
			s.LAN.RunUntil(func() bool { return arrived || s.ended() }, heartbeatWithin)
		}
	}
	return true, nil
}
