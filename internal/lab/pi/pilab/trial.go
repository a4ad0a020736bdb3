package pilab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"topdog/internal/lab/pi"
	"topdog/internal/lab/scene"
)

func (o *options) testCommand() *cobra.Command {
	t := &trial{options: o}
	c := &cobra.Command{
		Use:   "test",
		Short: "Put three boards of their own through everything that happens to a cluster",
		Long: `Boot three boards of their own, and put them through what happens to a cluster:
installation, power cut, cable, crash, clock, upgrade, removal. Takes about five
minutes on two processors. Needs no lab that is up, and disturbs none.

With --boards 1 only one is emulated, and topdog runs on this machine in place of the
others: less work for the processors. What network namespaces show as well is left out.

The exit status is 0 if all went as it should. Whatever happens, nothing is left
running.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if t.emulated < 1 || t.emulated > trialBoards {
				return misuse("--boards %d: say 1 to %d", t.emulated, trialBoards)
			}
			t.out = c.OutOrStdout()
			return t.run(c.Context())
		},
	}
	c.Flags().IntVar(&t.emulated, "boards", trialBoards, fmt.Sprintf("how `many` of the %d are emulated", trialBoards))
	return c
}

const (
	// trialBoards is how many boards the cluster has. The first are native, and the others emulated.
	trialBoards = 3

	// several is how many emulated boards the steps with this word need.
	several = 2

	// one is how many the steps with that word may have, beside natives.
	one = 1

	// attempts is how often a step is tried in which a board stands still. On a machine with much else to do, an
	// emulated board has stood still twice.
	attempts = 5

	// diagnoseTime bounds what is asked of boards that may not work any more.
	diagnoseTime = 30 * time.Second
)

// oldVersion and newVersion are those of the packages. Natives have the former.
const (
	oldVersion = "0.0.1~pilab"
	newVersion = "0.0.2~pilab"
)

func packageName(version string) string { return "topdog_" + version + "_arm64.deb" }

// trial puts topdog through what happens to a cluster, on emulated boards. The file trial.scene says what, and this is its stage.
//
// Emulated processors pause for up to 0.6 s. So the boards run with a long heartbeat,
// and what is checked is the order of events and their outcome. How fast topdog is,
// internal/lab/bench measures in network namespaces.
type trial struct {
	*options
	*pi.Stage
	emulated int       // how many boards are, 1 to 3; the others are native
	out      io.Writer // progress, a line per step

	supply  *pi.Supply
	machine pi.Machine
	work    string // all state
	start   time.Time
	image   string
	lab     *pi.Lab
	details []string // of the step, worth knowing for a reader of the output
}

// errStop says that a step failed, which has been printed already.
var errStop = errors.New("the test failed")

// run runs the whole test. All that it starts ends with it: when a step fails,
// when ctx does, and when this process is killed.
func (t *trial) run(ctx context.Context) (err error) {
	t.supply, t.work, t.start = t.options.supply(), filepath.Join(t.dir, "test"), time.Now()
	if t.machine, err = pi.FindMachine("raspi3b"); err != nil {
		return err
	}
	if err := t.supply.Check(ctx); err != nil {
		return err
	}
	steps, err := steps(t.emulated)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	lock, err := pi.Lock(t.work+".lock", lockTime)
	if err != nil {
		return err
	}
	defer lock.Close()
	// One that was killed has left its directory.
	if err := os.RemoveAll(t.work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()

	err = t.step(ctx, "build the image, and two versions of the package", t.build)
	if err == nil {
		err = t.step(ctx, fmt.Sprintf("boot %d of %d boards, the others are native", t.emulated, trialBoards), t.boot)
	}
	for i := 0; i < len(steps) && err == nil; i++ {
		err = t.step(ctx, steps[i].title, func(context.Context) (string, error) { return t.play(steps[i].scene) })
	}
	if err == nil {
		fmt.Fprintf(t.out, "all well after %.0f s\n", time.Since(t.start).Seconds())
	}
	return err
}

// step runs a step, and prints how it went and how long it took.
func (t *trial) step(ctx context.Context, name string, do func(context.Context) (detail string, err error)) error {
	begin := time.Now()
	fmt.Fprintf(t.out, "%4.0f s  %s ... ", time.Since(t.start).Seconds(), name)
	detail, err := do(ctx)
	took := time.Since(begin).Seconds()
	if err == nil {
		if detail != "" {
			detail = ": " + detail
		}
		fmt.Fprintf(t.out, "ok (%.1f s)%s\n", took, detail)
		return nil
	}
	if ctx.Err() != nil {
		fmt.Fprintf(t.out, "interrupted\n")
		return ctx.Err()
	}
	fmt.Fprintf(t.out, "FAIL (%.1f s)\n        %s\n", took, indent(err.Error()))
	t.diagnose(ctx)
	return fmt.Errorf("%w: %s", errStop, name)
}

// play plays a step.
func (t *trial) play(s *scene.Scene) (detail string, err error) {
	for range attempts {
		t.details = nil
		var again againError
		if err = s.Play(t, 0); !errors.As(err, &again) {
			return strings.Join(t.details, "; "), err
		}
		fmt.Fprintf(t.out, "(%v) ", again)
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
	fmt.Fprintf(t.out, "        --- %s\n        %s\n", scene.Name(n), indent(text))
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
	return errors.Join(err, os.RemoveAll(t.work))
}

func (t *trial) file(name string) string { return filepath.Join(t.work, name) }

// build builds the image, the package twice, the second as an upgrade of the first, the test that
// runs on a board, and what natives run.
func (t *trial) build(ctx context.Context) (string, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		t.image, err = t.supply.Image(ctx, t.machine)
		return err
	})
	for _, version := range []string{oldVersion, newVersion} {
		g.Go(func() error {
			_, err := t.supply.Package(ctx, t.machine, version, t.work)
			return err
		})
	}
	g.Go(func() error {
		return t.supply.Test(ctx, "./gpio", t.file("gpio.test"))
	})
	if t.emulated < trialBoards {
		g.Go(func() error { return t.supply.Program(ctx, oldVersion, t.file("topdog")) })
	}
	return packageName(oldVersion) + ", " + packageName(newVersion), g.Wait()
}

// boot builds the lab and waits until systemd has started everything on all boards.
func (t *trial) boot(ctx context.Context) (_ string, err error) {
	t.lab, err = pi.Temporary(t.file("lab"), t.machine, t.emulated, trialBoards-t.emulated, t.file("topdog"))
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
	return t.Run(trialBoards, `tr '\0' , </sys/firmware/devicetree/base/model; `+
		`printf ' Linux %s, %s' "$(uname -r)" "$(systemctl --version | head -n 1)"`)
}

//go:embed trial.scene
var sceneText string

// files lists all files but those that live and die with a boot, what dpkg
// knows and logs, and the user database: as Debian's packages do, topdog leaves its user. Most files of a board are
// Debian's libraries, which a static program has no part of.
const files = `find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp ` +
	`-o -path /var/lib/dpkg -o -path /var/log/dpkg.log -o -path /root -o -path /usr/lib/aarch64-linux-gnu ` +
	`-o -path /usr/share/perl \) -prune -o -print | ` +
	`grep -vE '^/etc/(passwd|group|shadow|gshadow)-?$|^/etc/\.pwd\.lock$' | LC_ALL=C sort`

// unit shows what systemd says of topdog's unit, and started is what it must be: systemd takes it for started, the daemon is
// no root, and it has not ended since the board booted.
const (
	unit = `systemctl show topdog -p Type -p NRestarts -p ActiveState -p SubState; ` +
		`stat -c %U /proc/$(systemctl show topdog -p MainPID --value)`
	started = `Type=notify\nNRestarts=0\nActiveState=active\nSubState=running\ntopdog\n`
)

// happened shows what topdog says has happened on a board, and when systemd has started it.
const happened = `(systemctl show topdog -p NRestarts -p MainPID; ` +
	`topdog status --json | grep -E '"(leader_name|term)"|^    +"reason"'; journalctl --no-pager -o cat -u topdog)`

// stoodStill shows what is logged when a leader is replaced because its emulated processor paused. If the dead man's switch of
// the leader ran, that board resigned for it. Otherwise its successor found out. A daemon whose holder stood still ends,
// which hands over as well.
const stoodStill = `(journalctl -b --no-pager -o cat -u topdog | grep -E 'this daemon did not run when its next heartbeat was due|` +
	`the holder does not answer any more \(not within|was replaced although it was alive'; true)`

// text is the scene, with what stands in for the names in braces.
func text() string {
	return strings.NewReplacer("{files}", files, "{unit}", unit, "{started}", started, "{happened}", happened, "{stood-still}", stoodStill,
		"{old}", packageName(oldVersion), "{new}", packageName(newVersion), "{new-version}", newVersion,
		"{address}", pi.Floating.String()+"/",
		"{override}", "/run/systemd/system/topdog.service.d/test.conf", "{answers}", "/etc/systemd/system/answers.service").Replace(sceneText)
}

// step is a part of the scene that is played as one, and begins anew as one.
type step struct {
	title string
	scene *scene.Scene
}

var stepLine = regexp.MustCompile(`(?m)^step (several |one )?"(.+)"$`)

// steps are those of the scene for so many emulated boards.
func steps(emulated int) (all []step, err error) {
	text := text()
	heads := stepLine.FindAllStringSubmatchIndex(text, -1)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if head[2] >= 0 {
			word := text[head[2]:head[3]]
			if word == "several " && emulated < several || word == "one " && emulated != one {
				continue
			}
		}
		before := strings.Count(text[:head[1]], "\n") // so that lines have their numbers
		s, err := scene.Parse("trial.scene", strings.Repeat("\n", before)+text[head[1]:end])
		if err != nil {
			return nil, err
		}
		all = append(all, step{text[head[4]:head[5]], s})
	}
	return all, nil
}
