// Package trial puts topdog through what happens to a cluster, on emulated
// boards: installation, power cuts, cables, crashes, clocks, upgrade, removal. The file trial.scene says what.
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
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"topdog/internal/lab/pi"
	"topdog/internal/lab/scene"
)

const (
	// boards is how many the cluster has. The first are native, and the others emulated.
	boards = 3

	// several is how many emulated boards the steps with this word need.
	several = 2

	// attempts is how often a step is tried in which a board stands still. On a machine with much else to do, an
	// emulated board has stood still twice.
	attempts = 5

	// waitTime is how long a test waits for another one to end.
	waitTime = 5 * time.Second

	// diagnoseTime bounds what is asked of boards that may not work any more.
	diagnoseTime = 30 * time.Second
)

// oldVersion and newVersion are those of the packages. Natives have the former.
const (
	oldVersion = "0.0.1~pilab"
	newVersion = "0.0.2~pilab"
)

func packageName(version string) string { return "topdog_" + version + "_arm64.deb" }

// Options say what to test, and where.
type Options struct {
	Supply   *pi.Supply
	Emulated int       // how many boards are, 1 to MaxEmulated; the others are native
	Out      io.Writer // progress, a line per step
}

// MaxEmulated is how many boards the test has.
const MaxEmulated = boards

// trial is a test that runs, and the stage of its scenes.
type trial struct {
	Options
	*pi.Stage
	machine pi.Machine
	dir     string // all state
	start   time.Time
	image   string
	lab     *pi.Lab

	details []string // of the step, worth knowing for a reader of the output
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
	if err := o.Supply.Check(ctx); err != nil {
		return err
	}
	steps, err := steps(o.Emulated)
	if err != nil {
		return err
	}
	t := &trial{Options: o, machine: machine, dir: filepath.Join(o.Supply.Dir, "test"), start: time.Now()}
	lock, err := pi.Lock(t.dir+".lock", waitTime)
	if err != nil {
		return err
	}
	defer lock.Close()
	// One that was killed has left its directory.
	if err := os.RemoveAll(t.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()

	err = t.step(ctx, "build the image, and two versions of the package", t.build)
	if err == nil {
		err = t.step(ctx, fmt.Sprintf("boot %d of %d boards, the others are native", t.Emulated, boards), t.boot)
	}
	for i := 0; i < len(steps) && err == nil; i++ {
		err = t.step(ctx, steps[i].title, func(context.Context) (string, error) { return t.play(steps[i].scene) })
	}
	if err == nil {
		fmt.Fprintf(o.Out, "all well after %.0f s\n", time.Since(t.start).Seconds())
	}
	return err
}

// step runs a step, and prints how it went and how long it took.
func (t *trial) step(ctx context.Context, name string, do func(context.Context) (detail string, err error)) error {
	begin := time.Now()
	fmt.Fprintf(t.Out, "%4.0f s  %s ... ", time.Since(t.start).Seconds(), name)
	detail, err := do(ctx)
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
	return fmt.Errorf("%w: %s", errStop, name)
}

// play plays a step.
func (t *trial) play(s *scene.Scene) (detail string, err error) {
	for range attempts {
		t.details = nil
		if err = s.Play(t, 0); !errors.Is(err, errAgain) {
			return strings.Join(t.details, "; "), err
		}
		fmt.Fprintf(t.Out, "(%v) ", errAgain)
	}
	return "", fmt.Errorf("in all %d attempts: %w", attempts, err)
}

// indent makes a text of several lines readable below a line of progress.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n        ")
}

// diagnose prints what a person needs who was not there.
func (t *trial) diagnose(ctx context.Context) {
	if t.lab == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	for n := 1; n <= t.lab.Natives(); n++ {
		t.tell(n, t.lab.Native(n).Log.String())
	}
	for _, b := range t.lab.Boards {
		out, err := b.Run(ctx, "ip -br addr; systemctl status --no-pager -n 0 topdog; "+
			"journalctl --no-pager -o short-monotonic -u topdog | tail -n 25")
		if err != nil && out == "" {
			out = err.Error()
		}
		t.tell(b.N, out)
	}
}

func (t *trial) tell(n int, text string) {
	fmt.Fprintf(t.Out, "        --- %s\n        %s\n", scene.Name(n), indent(text))
}

// end ends all that was started.
func (t *trial) end() error {
	if t.Stage != nil {
		t.Close()
	}
	var err error
	if t.lab != nil {
		err = t.lab.Close()
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}

func (t *trial) file(name string) string { return filepath.Join(t.dir, name) }

// build builds the image, the package twice, the second as an upgrade of the first, the test that
// runs on a board, and what natives run.
func (t *trial) build(ctx context.Context) (string, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		t.image, err = t.Supply.Image(ctx, t.machine)
		return err
	})
	for _, version := range []string{oldVersion, newVersion} {
		g.Go(func() error {
			_, err := t.Supply.Package(ctx, t.machine, version, t.dir)
			return err
		})
	}
	g.Go(func() error {
		_, err := goARMv6(ctx, t.Supply.Source, "test", "-c", "-ldflags=-s -w", "-o", t.file("gpio.test"), "./gpio")
		return err
	})
	if t.Emulated < boards {
		g.Go(func() error { return t.Supply.Program(ctx, oldVersion, t.file("topdog")) })
	}
	return packageName(oldVersion) + ", " + packageName(newVersion), g.Wait()
}

// boot builds the lab and waits until systemd has started everything on all boards.
func (t *trial) boot(ctx context.Context) (_ string, err error) {
	t.lab, err = pi.Temporary(t.file("lab"), t.machine, t.Emulated, boards-t.Emulated, t.file("topdog"))
	if err != nil {
		return "", err
	}
	files := []string{t.file(packageName(oldVersion)), t.file(packageName(newVersion)), t.file("gpio.test")}
	if err := t.lab.Boot(ctx, t.image, files...); err != nil {
		return "", err
	}
	if t.Stage, err = t.lab.Stage(ctx, pi.AskEvery); err != nil {
		return "", err
	}
	return t.Run(boards, `tr '\0' , </sys/firmware/devicetree/base/model; `+
		`printf ' Linux %s, %s' "$(uname -r)" "$(systemctl --version | head -n 1)"`)
}
