package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/scene"
)

// TestScenes plays scenes of internal/lab/scene on boards in network namespaces: those with something that no other test shows
// there. internal/daemon plays all of them in virtual time.
func TestScenes(t *testing.T) {
	for _, name := range []string{"cable", "drain", "pause", "resign"} {
		t.Run(name, judge.Of(func(t *judge.T) {
			scene.Play(t, &onBoards{testCluster: newCluster(t, 3, nil)}, name)
		}))
	}
}

// onBoards plays scenes on boards in network namespaces.
type onBoards struct {
	*testCluster
	marked time.Time
}

func (o *onBoards) Address(b int) netip.Addr { return o.board(b).Addr.Addr() }

func (o *onBoards) configure(b int, lines []string) {
	changes := settings{}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		changes[key] = value
	}
	o.board(b).set(changes)
}

func (o *onBoards) Start(b int, lines []string) error {
	o.configure(b, lines)
	o.board(b).start()
	return nil
}

func (o *onBoards) Set(b int, lines []string) error {
	o.configure(b, lines)
	o.board(b).signal(syscall.SIGHUP)
	return nil
}

func (o *onBoards) Do(number int, what string) error {
	b := o.board(number)
	switch what {
	case "stop":
		b.signal(syscall.SIGTERM)
		b.gone()
	case "kill":
		b.signal(syscall.SIGKILL)
		b.gone()
	case "freeze":
		b.signal(syscall.SIGSTOP)
	case "thaw":
		b.signal(syscall.SIGCONT)
	case "pull":
		return b.Pull()
	case "plug":
		return b.Plug()
	default:
		return fmt.Errorf("these boards know no %s", what)
	}
	return nil
}

func (o *onBoards) Topdog(b int, args []string) (string, error) {
	said := o.board(b).topdog(args...)
	if said.status != 0 {
		return said.stdout, errors.New(said.stderr)
	}
	return said.stdout, nil
}

func (o *onBoards) Status(b int) (console.Status, error) { return o.board(b).Status() }

func (o *onBoards) Logged(b int, text string) bool { return o.board(b).Log.Logged(text) }

func (o *onBoards) Answers(b int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*clientInterval)
	defer cancel()
	_, err := o.asker.WaitAnswer(ctx, func(n int) bool { return n == b })
	return err == nil
}

func (o *onBoards) Holders() []int { return o.testCluster.Holders.Current() }

// Recover has the leader hand over if the other board has lost the lead because it did not run: all boards run on this machine,
// and one that starts may keep it from its processor for so long that its dead man's switch releases the address.
func (o *onBoards) Recover(b int) {
	if !o.Logged(b, "this daemon did not run") {
		return
	}
	for _, leader := range o.boards {
		if s, err := leader.Status(); err == nil && s.Role == console.RoleLeader && leader != o.board(b) {
			leader.topdog("resign") // to the heir, whose rank is the highest
		}
	}
}

func (o *onBoards) Mark() { o.marked = time.Now() }

func (o *onBoards) Seen() (moves int, two bool) {
	return o.testCluster.Holders.Since(o.marked).Moves(), o.testCluster.Holders.Since(o.began).Overlap() > 0
}

func (o *onBoards) Pass(d time.Duration) { o.watchFor(d) }

// Until gives what must happen the time that it may need on a busy machine.
func (o *onBoards) Until(_ time.Duration, missing func() string) (lack string) {
	if err := cluster.Until("it holds", func() string { lack = missing(); return lack }); err == nil {
		return ""
	}
	return fmt.Sprintf("not within %v: %s", cluster.Timeout, lack)
}
