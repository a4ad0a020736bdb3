package pilab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/pi"
	"topdog/internal/lab/scene"
)

func (o *options) driftCommand() *cobra.Command {
	var d drift
	c := &cobra.Command{
		Use:   "drift",
		Short: "Have the boards' clocks run at other rates, and cut the leader off again and again",
		Long: `Set the algorithm strict on the boards of a lab that is up, and have the leader's clock
run too slowly, and those of the others too fast. Then the leader thinks that its lease
lasts, when to the others it is over. The LAN falls in two between them, again and
again, and both parts are asked who has the address.

The exit status is 0 if no leader that was cut off has answered after its successor.`,
		Args: cobra.NoArgs,
		RunE: o.onLab(func(c *cobra.Command, l *pi.Lab, _ []string) error {
			if d.off < 0 || d.off > maxDrift {
				return misuse("--off %g: the kernel runs a clock at most %d %% off its rate", d.off, maxDrift)
			}
			if d.cuts < 1 {
				return misuse("--cuts %d: cut the leader off once at least", d.cuts)
			}
			if n := len(l.Boards); n < config.MinVoters {
				return misuse("%d boards are up, and %d voters at least are needed: scripts/pilab up --boards %d", n, config.MinVoters, config.MinVoters)
			}
			if arch := l.Machine.Arch; arch != "arm64" {
				return misuse("the boards have the architecture %s, and their clocks can be set on arm64 only", arch)
			}
			d.out = c.OutOrStdout()
			return d.run(c.Context(), l)
		}),
	}
	c.Flags().IntVar(&d.cuts, "cuts", 20, "how `often` the leader is cut off")
	c.Flags().Float64Var(&d.off, "off", 0.9, "by how many `percent` the clocks are off, the leader's one way and the others' the other way")
	return c
}

const (
	// nominalTick is how many microseconds a clock is moved on a hundredth of a second, and maxDrift
	// is by how many percent the kernel lets that be changed (adjtimex(2)).
	nominalTick = 10_000
	maxDrift    = 10
	// driftTime bounds how long the boards take to agree, with a heartbeat of 2 s.
	driftTime = 2 * time.Minute
	// driftPatience is the grace that boards with that heartbeat have at first. They must not learn a longer one, since with
	// that their clocks may be off by more.
	driftPatience = "200ms"
	// driftSettles is how long the new rates are kept before the leader is cut off: a lease that has
	// begun at the old ones has ended by then.
	driftSettles = 5 * time.Second
	// driftAsks is how often this machine asks who has the address.
	driftAsks = 20 * time.Millisecond
	// driftWatched is for how long a leader that is cut off is asked after another one has taken over.
	driftWatched = 3 * time.Second
)

// setTick calls adjtimex(2) on a board for 64 bits: nothing of Debian's minimal system has a command for it.
const setTick = `perl -e '$t = "\0" x 208; substr($t, 0, 4) = pack("I", 0x4000); substr($t, 88, 8) = pack("q", %d); exit(syscall(171, $t) < 0)'`

//go:embed drift.scene
var driftText string

// driftScene cuts the leader off so often.
func driftScene(cuts int) (*scene.Scene, error) {
	return scene.Parse("drift.scene", strings.Replace(driftText, "{cuts}", strconv.Itoa(cuts), 1))
}

// drift is what the command does, and the stage of its scene.
type drift struct {
	*pi.Stage
	cuts int
	off  float64
	out  io.Writer

	leader   int // with a clock that runs slowly
	cut      int // the number of cuts so far
	unclear  int
	shortest handover
}

func (d *drift) run(ctx context.Context, l *pi.Lab) (err error) {
	s, err := driftScene(d.cuts)
	if err != nil {
		return err
	}
	if d.Stage, err = l.Stage(ctx, driftAsks); err != nil {
		return err
	}
	defer d.Close()
	if err := timed(d.out, "set the algorithm strict", d.vote); err != nil {
		return err
	}
	d.shortest.Least = math.MaxInt64
	err = s.Play(d, 0)
	if err := errors.Join(err, d.restore()); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "with clocks that are off by %g %%, no leader has answered after its successor in %d cuts; between the two nobody did, for %v in the shortest; replies were too slow to tell in %d\n",
		d.off, d.cuts, d.shortest, d.unclear)
	return nil
}

// vote has all boards vote.
func (d *drift) vote() error {
	var voters []string
	for _, b := range d.Boards {
		voters = append(voters, fmt.Sprintf("%q", b.Address()))
	}
	return d.Each(func(b *pi.Board) error {
		return d.Set(b.N, []string{`algorithm="strict"`, "voters=[" + strings.Join(voters, ", ") + "]", fmt.Sprintf("patience=%q", driftPatience)})
	})
}

// Named is the leader whose clock runs slowly.
func (d *drift) Named(name string) (boards []int, known bool) {
	return []int{d.leader}, name == "leader"
}

// Line has the leader's clock run slowly and those of the others fast.
func (d *drift) Line(words, _ []string) (known bool, err error) {
	if words[0] != "slow" {
		return false, nil
	}
	for {
		if d.leader, err = d.awaitHolder(0); err != nil {
			return true, err
		}
		err = d.Each(func(b *pi.Board) error {
			percent := d.off
			if b.N == d.leader {
				percent = -d.off
			}
			return setRate(d.Ctx, b, percent)
		})
		if err != nil {
			return true, err
		}
		d.Pass(driftSettles)
		// An emulated board may stand still for so long that another one leads meanwhile.
		if still, err := d.awaitHolder(0); err != nil || still == d.leader {
			d.Mark()
			return true, err
		}
	}
}

// Do waits until another board has taken over from one that is cut off, and looks at how the address has come to it.
func (d *drift) Do(boards []int, _ time.Duration, words, _ []string) (known bool, err error) {
	if words[0] != "replaced" {
		return false, nil
	}
	if _, err := d.awaitHolder(boards[0]); err != nil {
		return true, err
	}
	d.Pass(driftWatched)
	d.cut++
	h, ok := handoverFrom(boards[0], d.Prober.Replies(d.Marked))
	if !ok {
		return true, fmt.Errorf("cut %d: pi%d has not answered any more when it was cut off", d.cut, boards[0])
	}
	fmt.Fprintf(d.out, "%3d  pi%d is cut off, and pi%d takes over: nobody has answered for %v\n", d.cut, h.From, h.To, h)
	if h.Most < 0 {
		return true, fmt.Errorf("pi%d and pi%d have answered at a time", h.From, h.To)
	}
	if h.Least < 0 {
		d.unclear++
	}
	if h.Least < d.shortest.Least {
		d.shortest = h
	}
	return true, nil
}

// awaitHolder waits until one board other than that one, and no third one, has answered for a second.
func (d *drift) awaitHolder(other int) (n int, err error) {
	lack := d.Until(driftTime, func() string {
		found, _ := pi.Holders(d.Ctx, d.Prober, time.Second)
		found = slices.DeleteFunc(found, func(n int) bool { return n == other })
		if len(found) != 1 {
			return fmt.Sprintf("nobody has the address after %v: look at scripts/pilab sh 1 topdog status", driftTime)
		}
		n = found[0]
		return ""
	})
	if lack != "" {
		err = errors.New(lack)
	}
	return n, err
}

// setRate has a board's clock run faster by that much.
func setRate(ctx context.Context, b *pi.Board, percent float64) error {
	_, err := b.Run(ctx, fmt.Sprintf(setTick, nominalTick+int(percent*nominalTick/100)))
	return err
}

// restore has all clocks run at their rate again, and the switch pass all frames.
func (d *drift) restore() error {
	ctx, cancel := context.WithTimeout(context.Background(), driftTime)
	defer cancel()
	return errors.Join(d.Filter(nil), d.Each(func(b *pi.Board) error { return setRate(ctx, b, 0) }))
}

// handover is how the address has come from one board to another: nobody has answered for so long in between. An answer
// was given at a moment between the question and when it was heard, so there is a least and a most. If the most is
// negative, both have answered at a time.
type handover struct {
	From, To    int
	Least, Most time.Duration
}

func (h handover) String() string {
	return fmt.Sprintf("%v to %v", h.Least.Round(time.Millisecond), h.Most.Round(time.Millisecond))
}

// handoverFrom is that from one board to the first that has answered afterwards. ok is false if one of them has not.
func handoverFrom(from int, answers []observe.Reply) (h handover, ok bool) {
	var last, first observe.Reply
	for _, a := range answers {
		switch {
		case a.Board == from && a.Asked.After(last.Asked):
			last = a
		case a.Board != from && (first.Board == 0 || a.Heard.Before(first.Heard)):
			first = a
		}
	}
	return handover{from, first.Board, first.Asked.Sub(last.Heard), first.Heard.Sub(last.Asked)}, last.Board != 0 && first.Board != 0
}
