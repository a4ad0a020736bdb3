package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
	"topdog/wire"
)

// Stage is a cluster of topdogs on which scenes are played (scene.Stage).
type Stage struct {
	*Cluster
	Boards []*Topdog // 1, 2 and so on
	// Strangers are how many machines there are behind the boards on which no topdog runs.
	Strangers int
	// Asker asks at the address.
	Asker *observe.Asker

	// ending are the boards whose daemon ends, until it is started again: it was told to, or its holder was killed.
	ending map[int]bool
	marked time.Time
}

// NewStage builds a LAN, by New or NewWithIPv6, and prepares its boards: they have one key, and run nothing yet. Close ends it.
func NewStage(build func(boards int) (*Cluster, error), p Program, boards, strangers int, changes Settings) (s Stage, err error) {
	c, err := build(boards + strangers)
	if err != nil {
		return s, err
	}
	s.Cluster, s.Strangers = c, strangers
	key := config.NewKey()
	for n := range boards {
		b, err := s.NewTopdog(p, n+1, changes)
		if err == nil {
			err = b.SetKey(key)
		}
		if err != nil {
			return Stage{}, errors.Join(err, c.Close())
		}
		s.Boards = append(s.Boards, b)
	}
	return s, nil
}

// exitTimeout is how long a daemon gets to end.
const exitTimeout = 8 * time.Second

// board is the one of a number.
func (s *Stage) board(n int) *Topdog { return s.Boards[n-1] }

// host is a machine by its number in scenes.
func (s *Stage) host(n int) *netns.Host {
	switch {
	case n > 0:
		return s.LAN.Board(n)
	case n == scene.Client:
		return s.LAN.Client()
	}
	return s.LAN.Board(len(s.Boards) - n)
}

// Machines are the boards, the client and the strangers.
func (s *Stage) Machines() (all []int) {
	for n := -s.Strangers; n <= len(s.Boards); n++ {
		all = append(all, n)
	}
	return all
}

// Address is that of a board.
func (s *Stage) Address(n int) netip.Addr { return s.host(n).Addr.Addr() }

// Configure changes the settings of a board by lines of its configuration.
func (s *Stage) Configure(n int, lines []string) error {
	changes := Settings{}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		changes[key] = value
	}
	return s.board(n).Set(changes)
}

// Start starts the daemon of a board, unless it runs.
func (s *Stage) Start(n int, config []string) error {
	if n < 1 || n > len(s.Boards) {
		return fmt.Errorf("there is no %s: this stage has %d boards", scene.Name(n), len(s.Boards))
	}
	b := s.board(n)
	if s.ending[n] {
		b.Ended(exitTimeout)
		delete(s.ending, n)
	}
	if b.Running() {
		return nil
	}
	return errors.Join(s.Configure(n, config), b.Run())
}

// Set changes the settings of a board that runs.
func (s *Stage) Set(n int, config []string) error {
	return errors.Join(s.Configure(n, config), s.board(n).Signal(syscall.SIGHUP))
}

// signals are those of scenes.
var signals = map[scene.Signal]syscall.Signal{
	scene.Kill: unix.SIGKILL, scene.Terminate: unix.SIGTERM, scene.Freeze: unix.SIGSTOP, scene.Thaw: unix.SIGCONT,
}

// Signal sends a signal to processes of a board. One that has ended meanwhile needs none.
func (s *Stage) Signal(n int, to scene.Processes, signal scene.Signal) error {
	b := s.board(n)
	b.Log.Note("%v", signals[signal])
	if signal == scene.Kill || signal == scene.Terminate {
		if s.ending == nil {
			s.ending = map[int]bool{}
		}
		s.ending[n] = b.Running()
	}
	pids, err := b.Processes()
	for _, pid := range pids {
		of := scene.Holder
		if pid == b.PID() {
			of = scene.Daemon
		}
		if to&of != 0 {
			_ = unix.Kill(pid, signals[signal])
		}
	}
	return err
}

// Cable pulls the cable of a board, or puts it back.
func (s *Stage) Cable(n int, in bool) error {
	if in {
		return s.host(n).Plug()
	}
	return s.host(n).Pull()
}

// Filter has the switch lose frames.
func (s *Stage) Filter(filters []scene.Filter) error { return s.Lose(filters, Election) }

// Lose has the switch lose frames where this traffic is the election.
func (s *Stage) Lose(filters []scene.Filter, election netns.Traffic) error {
	return s.LAN.Filter(Filters(filters, election, func(n int) netns.Port { return s.host(n).Port() })...)
}

// Election is what the boards send each other, unless they are configured otherwise.
var Election = netns.Traffic{Protocol: unix.IPPROTO_UDP, Port: wire.DefaultGroup.Port()}

// Filters are those of a scene at the ports of a switch, where this traffic is the election.
func Filters(all []scene.Filter, election netns.Traffic, port func(machine int) netns.Port) (filters []netns.Filter) {
	ports := func(machines []int) (ports []netns.Port) {
		if machines != nil {
			ports = []netns.Port{} // nobody is not everybody
		}
		for _, n := range machines {
			ports = append(ports, port(n))
		}
		return ports
	}
	for _, f := range all {
		filter := netns.Filter{From: ports(f.From), To: ports(f.To), Multicast: f.Multicast, Share: f.Share}
		if f.Election {
			filter.Traffic = election
		}
		filters = append(filters, filter)
	}
	return filters
}

// Topdog gives topdog a command on a board, with its configuration.
func (s *Stage) Topdog(n int, args []string) (said string, err error) {
	b := s.board(n)
	return b.Command(b.Program.Path, append(args, "--config", b.ConfigFile()), netns.Env(b.Program.Env...))
}

// State is what a board says of itself.
func (s *Stage) State(n int) (scene.State, error) {
	status, err := s.board(n).Status()
	return StateOf(status), err
}

// Logged reports whether a board has logged a text.
func (s *Stage) Logged(n int, text string) bool { return s.board(n).Log.Logged(text) }

// Answers reports whether a board answers the client.
func (s *Stage) Answers(n int) bool { return Answers(s.Asker, n) }

// Answers reports whether a board answers a client.
func Answers(client *observe.Asker, n int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := client.WaitAnswer(ctx, func(answers int) bool { return answers == n })
	return err == nil
}

// Holders are the boards whose kernels have the address.
func (s *Stage) Holders() []int { return s.Cluster.Holders.Current() }

// Recover has the leader hand over if the other board has lost the lead because it did not run: all boards run on this machine,
// and one that starts may keep it from its processor for so long that its dead man's switch releases the address.
func (s *Stage) Recover(n int) {
	if !s.Logged(n, "this daemon did not run") {
		return
	}
	if holders := s.Holders(); len(holders) == 1 && holders[0] != n {
		_, _ = s.Topdog(holders[0], []string{"resign"}) // to the heir, whose rank is the highest
	}
}

// Mark forgets what has happened to the address, and Seen tells what has happened since.
func (s *Stage) Mark() { s.marked = time.Now() }

// Seen is how often the address has moved, and whether two boards have had it.
func (s *Stage) Seen() (moves int, two bool) {
	since := s.Cluster.Holders.Since(s.marked)
	return since.Moves(), since.Overlap() > 0
}

// Pass waits.
func (s *Stage) Pass(d time.Duration) { time.Sleep(d) }

// Now is how long the cluster has been there.
func (s *Stage) Now() time.Duration { return time.Since(s.began) }

// Until gives what must happen the time that it may need on a busy machine.
func (s *Stage) Until(_ time.Duration, missing func() string) (lack string) {
	if err := Until("it holds", func() string { lack = missing(); return lack }); err == nil {
		return ""
	}
	return fmt.Sprintf("not within %v: %s", Timeout, lack)
}

// StateOf is what scenes want to know of what a board says of itself.
func StateOf(s console.Status) scene.State {
	state := scene.State{Role: s.Role, Grade: s.Board.Grade, Holding: s.Holding, Sees: map[string]string{}, Problems: []string{}}
	if s.Held() {
		state.Leader = s.LeaderName
	}
	if len(s.Changes) > 0 {
		state.Reason = s.Changes[0].Reason
	}
	for _, b := range s.Boards {
		state.Sees[b.Name] = b.Grade
	}
	// That a leader was late, on a busy machine, is nothing that a scene can wait to be over: the group remembers it for hours.
	for _, p := range slices.DeleteFunc(slices.Clone(s.Problems), func(p console.Problem) bool {
		return string(p.Kind) == election.NoticePatience.Identifier()
	}) {
		state.Problems = append(state.Problems, p.Text)
	}
	return state
}
