// Package trial puts topdog through what happens to a cluster, on emulated
// boards: installation, power cuts, cables, crashes, clocks, upgrade, removal.
//
// Emulated processors pause for up to 0.6 s. So the boards run with a long heartbeat,
// and what is checked is the order of events and their outcome. How fast topdog is,
// internal/lab/bench measures in network namespaces.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/pi"
)

const (
	// boards is how many the cluster has. The first are native, and the others emulated.
	boards = 3

	// bootTime bounds a boot. 40 s are usual for three at once on two processors.
	bootTime = 4 * time.Minute

	// agreeTime bounds the wait for the boards to agree. A take-over takes about
	// a second, and a look at the lights 4.5 s.
	agreeTime = time.Minute

	// handoverTime is what a hand-over may cost on boards that pause for 0.6 s,
	// three of them at their own time. On real ones it is a round trip.
	handoverTime = 2 * time.Second
)

// Options say what to test, and where.
type Options struct {
	Supply   *pi.Supply
	Emulated int       // how many boards are, 1 to MaxEmulated; the others are native
	Out      io.Writer // progress, a line per step
}

// MaxEmulated is how many boards the test has.
const MaxEmulated = boards

// trial is a test that runs.
type trial struct {
	Options
	machine pi.Machine
	dir     string // all state
	start   time.Time
	lab     *pi.Lab
	asker   *observe.Asker

	image    string
	old, new string // packages
	native   string // program
}

// errStop says that a step failed, which has been printed already.
var errStop = errors.New("the test failed")

// Run runs the whole test. All that it starts ends with it: when a step fails,
// when ctx does, and when this process is killed.
func Run(ctx context.Context, o Options) (err error) {
	machine, err := pi.FindMachine("raspi3b")
	if err != nil {
		return err
	}
	if err := o.Supply.Check(ctx, machine); err != nil {
		return err
	}
	dir, release, err := ownDir(o.Supply.Dir)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	t := &trial{Options: o, machine: machine, dir: dir, start: time.Now()}
	defer func() { err = errors.Join(err, t.end()) }()

	image := t.begin(func() (string, error) { return o.Supply.Image(ctx, machine.Arch) })
	defer func() {
		cancel()
		_, _ = image.wait() // The step reports it, unless one before has failed.
	}()

	for _, s := range t.steps(image) {
		if s.least > o.Emulated {
			continue
		}
		if err := t.run(ctx, s); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "all well after %.0f s\n", time.Since(t.start).Seconds())
	return nil
}

// steps are all that is tested, in order.
func (t *trial) steps(image *background) []step {
	return []step{
		{name: "build two versions of the package", do: t.packages},
		{name: "build the image from Debian packages", do: func(context.Context) (string, error) {
			var err error
			t.image, err = image.wait()
			return t.image, err
		}},
		{name: fmt.Sprintf("boot %d of %d boards, the others are native", t.Emulated, boards), do: t.boot},
		{name: "run a test for ARMv6 on a board", do: t.armv6OnBoard},
		{name: "install the package: nothing starts unconfigured", do: t.install},
		{name: "configure and start: the units get ready", do: t.configure},
		{name: "one leader, its light pulses, its address answers", do: t.oneLeader},
		{name: "resign: the heir has light and address", do: t.resign, least: several},
		{name: "clocks jump by a year, forwards and back: nothing happens", do: t.clocks, least: several},
		{name: "SIGKILL of the leader's daemon: dark, no address, another leads", do: t.crash},
		{name: "cable of the leader pulled: another leads", do: t.pull, least: several},
		{name: "cable plugged in: one leader", do: t.plug, least: several},
		{name: "shutdown of the leader: it hands over before its services stop", do: t.shutDown},
		{name: "power cut of the leader: another leads", do: t.powerCut},
		{name: "power back: it joins as a follower", do: t.powerBack, least: several},
		{name: "upgrade of the leader: it hands over", do: t.upgrade, least: several},
		{name: "remove the leader's package: dark, no address, another leads", do: t.remove, least: several},
		{name: "purge: no file is left", do: t.purge, least: several},
	}
}

// ownDir makes a directory for one test, and removes those of tests that were
// killed: no process holds their lock any more.
func ownDir(parent string) (dir string, release func(), err error) {
	const prefix = "test-"
	old, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return "", nil, err
	}
	for _, path := range old {
		if f, err := lockFile(path); err == nil {
			err = os.RemoveAll(path)
			f.Close()
			if err != nil {
				return "", nil, err
			}
		}
	}
	if dir, err = os.MkdirTemp(parent, prefix); err != nil {
		return "", nil, err
	}
	f, err := lockFile(dir)
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		os.RemoveAll(dir)
		f.Close()
	}, nil
}

func lockFile(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

// step is one thing that is tested. It returns what is worth knowing about it.
type step struct {
	name  string
	do    func(context.Context) (detail string, err error)
	least int // how many emulated boards it is for
}

// several is for steps that show on one emulated board what others show as well, or what namespaces do.
const several = 2

// run runs a step, and prints how it went and how long it took.
func (t *trial) run(ctx context.Context, s step) error {
	begin := time.Now()
	fmt.Fprintf(t.Out, "%4.0f s  %s ... ", time.Since(t.start).Seconds(), s.name)
	detail, err := s.do(ctx)
	took := time.Since(begin).Seconds()
	if err == nil {
		if detail != "" {
			detail = ": " + detail
		}
		fmt.Fprintf(t.Out, "ok (%.1f s)%s\n", took, detail)
		return nil
	}
	if ctx.Err() != nil {
		fmt.Fprintf(t.Out, "interrupted\n")
		return ctx.Err()
	}
	fmt.Fprintf(t.Out, "FAIL (%.1f s)\n        %s\n", took, indent(err.Error()))
	t.diagnose(ctx)
	return fmt.Errorf("%w: %s", errStop, s.name)
}

// indent makes a text of several lines readable below a line of progress.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n        ")
}

// diagnoseTime bounds what is asked of boards that may not work any more.
const diagnoseTime = 30 * time.Second

// diagnose prints what a person needs who was not there.
func (t *trial) diagnose(ctx context.Context) {
	if t.lab == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	for _, n := range t.lab.Natives() {
		out, err := n.Log(ctx)
		if err != nil {
			out = err.Error()
		}
		fmt.Fprintf(t.Out, "        --- %s\n        %s\n", n.Name(), indent(out))
	}
	for _, b := range t.lab.Boards() {
		out, err := b.Run(ctx, "ip -br addr; systemctl status --no-pager -n 0 topdog; journalctl --no-pager -o short-monotonic -u topdog | tail -n 25")
		if err != nil && out == "" {
			out = err.Error()
		}
		fmt.Fprintf(t.Out, "        --- %s\n        %s\n", b.Name(), indent(out))
	}
}

// end ends all that was started.
func (t *trial) end() error {
	if t.asker != nil {
		t.asker.Close()
	}
	if t.lab != nil {
		return t.lab.Close()
	}
	return nil
}

// background is something that runs beside the steps.
type background struct {
	done   chan struct{}
	result string
	err    error
}

func (t *trial) begin(do func() (string, error)) *background {
	b := &background{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.result, b.err = do()
	}()
	return b
}

func (b *background) wait() (string, error) {
	<-b.done
	return b.result, b.err
}

// oldVersion and newVersion are those of the packages. Natives have the former.
const (
	oldVersion = "0.0.1~pilab"
	newVersion = "0.0.2~pilab"
)

// packages builds the package twice, the second as an upgrade of the first, the test that
// runs on a board, and what natives run.
func (t *trial) packages(ctx context.Context) (string, error) {
	dir := filepath.Join(t.dir, "packages")
	g, ctx := errgroup.WithContext(ctx)
	for version, path := range map[string]*string{oldVersion: &t.old, newVersion: &t.new} {
		g.Go(func() (err error) {
			*path, err = t.Supply.Package(ctx, t.machine.Package, version, dir)
			return err
		})
	}
	g.Go(func() error { return buildTest(ctx, t.Supply.Source, "gpio", t.gpioTest()) })
	if t.Emulated < boards {
		t.native = filepath.Join(t.dir, "topdog")
		g.Go(func() error { return t.Supply.Program(ctx, oldVersion, t.native) })
	}
	err := g.Wait()
	return filepath.Base(t.old) + ", " + filepath.Base(t.new), err
}

// boot builds the lab and waits until systemd has started everything on all boards.
func (t *trial) boot(ctx context.Context) (string, error) {
	var err error
	if t.lab, err = pi.Temporary(filepath.Join(t.dir, "lab"), t.machine, t.Emulated, boards-t.Emulated, t.native); err != nil {
		return "", err
	}
	if err := t.lab.Flash(t.image, t.old, t.new, t.gpioTest()); err != nil {
		return "", err
	}
	for _, b := range t.lab.Boards() {
		if err := b.PowerOn(); err != nil {
			return "", err
		}
	}
	if err := t.lab.Each(func(b *pi.Board) error { return b.WaitReady(ctx, bootTime) }); err != nil {
		return "", err
	}
	return t.board(last).Run(ctx, `echo "$(cat /sys/firmware/devicetree/base/model | tr -d '\0'), Linux $(uname -r), $(systemctl --version | head -n 1)" | tr -d '\n'`)
}

// member is a board of the cluster, be it emulated or native.
type member interface {
	Name() string
	Address() netip.Prefix
	Status(context.Context) (console.Status, error)
	Resign(context.Context) error
	Log(context.Context) (string, error)
}

// members are all boards, in the order of their numbers.
func (t *trial) members() (all []member) {
	for _, n := range t.lab.Natives() {
		all = append(all, n)
	}
	for _, b := range t.lab.Boards() {
		all = append(all, b)
	}
	return all
}

func (t *trial) member(n int) member { return t.members()[n-1] }

// board is an emulated one.
func (t *trial) board(n int) *pi.Board {
	b, err := t.lab.Board(n)
	if err != nil {
		panic(err) // a mistake in this test
	}
	return b
}
