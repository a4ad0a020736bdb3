package soak

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

const (
	// numBoards is how many run topdog, in either mode.
	numBoards = 3
	// exitTimeout is how long a daemon gets to end after SIGTERM.
	exitTimeout = 8 * time.Second
)

// stage is the group to which things are done.
type stage struct {
	*cluster.Cluster
	boards  []*cluster.Topdog
	probers [2]*netns.Host // machines without topdog: where places are
	drops   []drop         // what the switch drops
	// ending are the boards whose daemon ends, by number, until it is started again: it was told to, or its holder was killed.
	ending map[int]bool
}

// newStage builds the group, and starts its boards.
func newStage(p cluster.Program, strict bool) (s *stage, err error) {
	s = &stage{ending: make(map[int]bool)}
	if s.Cluster, err = cluster.New(numBoards + len(s.probers)); err != nil {
		return nil, err
	}
	for i := range s.probers {
		s.probers[i] = s.LAN.Board(numBoards + 1 + i)
	}
	if err := s.startBoards(p, strict); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) startBoards(p cluster.Program, strict bool) error {
	key := config.NewKey()
	for n := 1; n <= numBoards; n++ {
		b, err := s.NewTopdog(p, n, s.settings(strict))
		if err != nil {
			return err
		}
		s.boards = append(s.boards, b)
		if err := errors.Join(b.SetKey(key), b.Run()); err != nil {
			return err
		}
	}
	return nil
}

// close ends all.
func (s *stage) close() error {
	s.Stop(exitTimeout / 2)
	return s.Close()
}

// board returns the board of a number.
func (s *stage) board(number int) *cluster.Topdog { return s.boards[number-1] }

// hosts are all that are connected to the switch.
func (s *stage) hosts() []*netns.Host {
	hosts := []*netns.Host{s.LAN.Client()}
	for n := range numBoards + len(s.probers) {
		hosts = append(hosts, s.LAN.Board(n+1))
	}
	return hosts
}

func (s *stage) nothing(int) error { return nil }

func (s *stage) pull(board int) error { return s.board(board).Pull() }
func (s *stage) plug(board int) error { return s.board(board).Plug() }

// drop is something that the switch drops, as long as a fault lasts.
type drop struct {
	name    string
	filters []netns.Filter
}

// drop has the switch drop something. What two faults want goes on until both have ended.
func (s *stage) drop(name string, filters ...netns.Filter) error {
	s.drops = append(s.drops, drop{name, filters})
	return s.filter()
}

// pass ends a drop of this name.
func (s *stage) pass(name string) error {
	if i := slices.IndexFunc(s.drops, func(d drop) bool { return d.name == name }); i >= 0 {
		s.drops = slices.Delete(s.drops, i, i+1)
	}
	return s.filter()
}

func (s *stage) filter() error {
	var all []netns.Filter
	for _, d := range s.drops {
		all = append(all, d.filters...)
	}
	return s.LAN.Filter(all...)
}

func (s *stage) cut(board int) error  { return s.drop("cut", netns.Cut(s.board(board).Port())...) }
func (s *stage) heal(board int) error { return s.pass("cut") }

func (s *stage) deafen(board int) error {
	return s.drop("deaf", netns.Filter{To: netns.Ports(s.board(board).Host)})
}
func (s *stage) hear(board int) error { return s.pass("deaf") }

func (s *stage) mute(board int) error {
	return s.drop("mute", netns.Filter{From: netns.Ports(s.board(board).Host)})
}
func (s *stage) speak(board int) error { return s.pass("mute") }

// halt lets nothing pass.
func (s *stage) halt(int) error   { return s.drop("all", netns.Filter{}) }
func (s *stage) resume(int) error { return s.pass("all") }

func (s *stage) dropMulticast(int) error { return s.drop("multicast", netns.Filter{Multicast: true}) }
func (s *stage) passMulticast(int) error { return s.pass("multicast") }

// split divides the LAN. The board that is named is alone or not; the client and one place are
// on one side, by chance, and the other place on the other one.
func (s *stage) split(side uint64, board int) error {
	apart := []*netns.Host{s.board(board).Host, s.probers[1]}
	others := slices.DeleteFunc(slices.Clone(s.boards), func(b *cluster.Topdog) bool { return b.Number == board })
	for i, b := range others[1:] { // one stays
		if side>>i&1 == 1 {
			apart = append(apart, b.Host)
		}
	}
	if side>>(len(s.boards))&1 == 1 {
		apart = append(apart, s.LAN.Client(), s.probers[0])
		apart = slices.DeleteFunc(apart, func(h *netns.Host) bool { return h == s.probers[1] })
	}
	rest := slices.DeleteFunc(s.hosts(), func(h *netns.Host) bool { return slices.Contains(apart, h) })
	return s.drop("split", netns.Apart(netns.Ports(apart...), netns.Ports(rest...))...)
}

func (s *stage) join(int) error { return s.pass("split") }

// lose sets the share of topdog's packets that every receiver loses.
func (s *stage) lose(share float64) error {
	if share == 0 {
		return s.pass("loss")
	}
	boards := netns.Ports()
	for _, b := range s.boards {
		boards = append(boards, b.Port())
	}
	traffic := netns.Traffic{Protocol: unix.IPPROTO_UDP, Port: wire.DefaultGroup.Port()}
	return s.drop("loss", netns.Filter{To: boards, Traffic: traffic, Share: share})
}

// signal sends a signal to those processes of a board for which wanted is true.
func (s *stage) signal(board int, sig syscall.Signal, wanted func(pid int) bool) error {
	pids, err := s.board(board).Processes()
	for _, pid := range pids {
		if wanted(pid) {
			_ = unix.Kill(pid, sig) // it may have ended meanwhile
		}
	}
	return err
}

func everyProcess(int) bool { return true }

func (s *stage) freezeBoard(board int) error { return s.signal(board, unix.SIGSTOP, everyProcess) }
func (s *stage) thaw(board int) error        { return s.signal(board, unix.SIGCONT, everyProcess) }
func (s *stage) killBoard(board int) error   { return s.signal(board, unix.SIGKILL, everyProcess) }

func (s *stage) freezeDaemon(board int) error {
	return s.signal(board, unix.SIGSTOP, func(pid int) bool { return pid == s.board(board).PID() })
}

func (s *stage) killDaemon(board int) error {
	return s.signal(board, unix.SIGKILL, func(pid int) bool { return pid == s.board(board).PID() })
}

// killHolder ends the daemon, too: without a holder it has nothing to do.
func (s *stage) killHolder(board int) error {
	s.ending[board] = s.board(board).Running()
	return s.signal(board, unix.SIGKILL, func(pid int) bool { return pid != s.board(board).PID() })
}

// terminate ends a daemon as systemd does.
func (s *stage) terminate(board int) error {
	s.ending[board] = true
	_ = s.board(board).Signal(syscall.SIGTERM) // it may have ended
	return nil
}

// restart ends a daemon and starts it as soon as it has ended.
func (s *stage) restart(board int) error {
	if err := errors.Join(s.terminate(board), s.thaw(board)); err != nil {
		return err
	}
	s.board(board).Ended(exitTimeout)
	return s.start(board)
}

// restore lets every board run that another fault has kept from it. A daemon that stood still when it was told to
// end, or when its holder was killed, ends only now.
func (s *stage) restore() error {
	for _, b := range s.boards {
		if err := s.thaw(b.Number); err != nil {
			return err
		}
		if s.ending[b.Number] {
			b.Ended(exitTimeout)
		}
		if err := s.start(b.Number); err != nil {
			return err
		}
	}
	return nil
}

// start starts the daemon of a board, unless it runs.
func (s *stage) start(board int) error {
	b := s.board(board)
	if !b.Running() {
		delete(s.ending, board)
		return b.Run()
	}
	return nil
}

func (s *stage) startNth(n int) error { return s.start(s.boards[n].Number) }

// resignTimeout is for a board that is frozen by another fault.
const resignTimeout = 500 * time.Millisecond

// resign lets a board hand over. One that does not lead refuses.
func (s *stage) resign(board int) error {
	ctx, cancel := context.WithTimeout(context.Background(), resignTimeout)
	defer cancel()
	if _, err := s.board(board).Client().Resign(ctx); err != nil {
		s.board(board).Log.Note("resign: %v", err)
	}
	return nil
}

// settings are what the boards' configuration has beside what every test wants.
func (s *stage) settings(strict bool) cluster.Settings {
	if !strict {
		return nil
	}
	var voters []string
	for n := range numBoards {
		voters = append(voters, cluster.Quote(s.LAN.Board(n+1).Addr.Addr().String()))
	}
	return cluster.Settings{"algorithm": cluster.Quote("strict"), "voters": "[" + strings.Join(voters, ", ") + "]"}
}
