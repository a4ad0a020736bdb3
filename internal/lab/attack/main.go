package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/command"
	"topdog/internal/lab/netns"
)

// Main runs the program scripts/attack.
func Main() {
	PlayUser()
	command.Main("attack", func(ctx context.Context, args []string) error { return run(ctx, args, os.Stdout) })
}

// options are the flags.
type options struct {
	quick   bool
	lasts   time.Duration
	runs    int
	rate    int
	before  string
	systems []string
	places  []place
	attacks []attack
	json    string
	page    string
	from    string
}

const (
	quickFor, longFor   = 1500 * time.Millisecond, 30 * time.Second
	quickRuns, longRuns = 2, 20
	// quickRate is the most that the short form sends a second, so that any machine can.
	quickRate = 10_000
)

func parse(args []string) (o options, err error) {
	f := command.Flags("attack")
	long := f.Bool("long", false, "all attacks, 30 s each, in all places (about two hours), instead of the short form (a minute), which fails if topdog misses a goal")
	f.DurationVar(&o.lasts, "for", 0, "`how long` each attack lasts (default 1.5s, or 30s in the long form)")
	f.IntVar(&o.runs, "runs", 0, "`n` failures under each flood (default 2, or 20 in the long form)")
	f.IntVar(&o.rate, "rate", 0, "send `n` frames a second in each flood, instead of what it has by default")
	f.StringVar(&o.before, "before", "", "attack another build of topdog as well: this `program`")
	systems := f.String("systems", "", "only these `keys` of topdog,before,keepalived,ucarp")
	where := f.String("places", "", "only these `keys` of apart,shared,tenth: where the laptop and the boards run")
	which := f.String("attacks", "", "only these `keys`, separated by commas; \"list\" lists them")
	f.StringVar(&o.json, "json", "", "write all figures to this `file`")
	f.StringVar(&o.page, "page", "", "put the tables into this Markdown `file`, between its two marks")
	f.StringVar(&o.from, "from", "", "attack nothing: show the figures of these `files` that --json has written, separated by commas")
	if err := command.Parse(f, args); err != nil {
		return o, err
	}
	if o.lasts < 0 || o.runs < 0 || o.rate < 0 {
		return o, errors.New("--for, --runs and --rate must be positive")
	}
	o.quick = !*long
	all := []string{"topdog", "before", "keepalived", "ucarp"}
	if o.before == "" {
		all = slices.Delete(all, 1, 2)
	}
	usual, usualPlaces, usualSystems := attacks(), places(), all
	lasts, runs := longFor, longRuns
	if o.quick {
		lasts, runs = quickFor, quickRuns
		usual = slices.DeleteFunc(usual, func(a attack) bool { return !a.is("quick") })
		usualPlaces = usualPlaces[1:2] // any machine has it
		usualSystems = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "keepalived" || s == "ucarp" })
	}
	if o.lasts == 0 {
		o.lasts = lasts
	}
	if o.runs == 0 {
		o.runs = runs
	}
	if o.attacks, err = command.Choose("--attacks", *which, usual, attacks()); err != nil {
		return o, err
	}
	if o.places, err = command.Choose("--places", *where, usualPlaces, places()); err != nil {
		return o, err
	}
	o.systems, err = command.Choose("--systems", *systems, usualSystems, all)
	return o, err
}

// adapted is the rate of a flood, 0 for as many frames as it can.
func (o options) adapted(rate int) int {
	switch {
	case o.rate > 0:
		return o.rate
	case o.quick && (rate == 0 || rate > quickRate):
		return quickRate
	}
	return rate
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.from != "" {
		r, err := load(strings.Split(o.from, ",")...)
		if err != nil {
			return err
		}
		return r.publish(o, out)
	}
	if err := errors.Join(netns.Available(), cluster.RaisePriority()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "topdog-attack")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	systems, err := o.build(ctx, dir)
	if err != nil {
		return err
	}
	r := &report{Systems: systems, Places: o.places, Attacks: o.attacks, Processors: len(processors)}
	err = o.attackAll(ctx, r)
	err = errors.Join(err, r.publish(o, out))
	if o.quick {
		err = errors.Join(err, r.judge())
	}
	return err
}

// build builds topdog, and says which systems there are.
func (o options) build(ctx context.Context, dir string) (systems []system, err error) {
	keys := map[string]string{"topdog": "topdog-100ms", "before": "topdog-100ms", "keepalived": "keepalived-100ms", "ucarp": "ucarp-1s"}
	for _, name := range o.systems {
		s := system{Name: name, Key: keys[name]}
		switch name {
		case "topdog":
			s.program = filepath.Join(dir, "topdog")
			err = cluster.Build(ctx, s.program)
		case "before":
			s.program = o.before
		}
		if err != nil {
			return nil, err
		}
		if s.program != "" {
			text, err := exec.CommandContext(ctx, s.program, "version").Output()
			if err != nil {
				return nil, fmt.Errorf("ask %s for its version: %w", s.program, err)
			}
			s.Version = strings.TrimSpace(string(text))
		}
		systems = append(systems, s)
	}
	return systems, nil
}

// attackAll attacks every system in every place in all ways. What fails is a row that says why.
func (o options) attackAll(ctx context.Context, r *report) error {
	for _, where := range o.places {
		for _, sys := range r.Systems {
			s := &stage{ctx: ctx, system: sys, place: where, options: o}
			err := o.attackGroup(r, s)
			if err = errors.Join(err, s.end()); err != nil {
				return fmt.Errorf("%s, %s: %w", sys.Name, where.Title, err)
			}
		}
	}
	return nil
}

func (o options) attackGroup(r *report, s *stage) error {
	for _, a := range o.attacks {
		if !a.suits(s.system, s.place) {
			continue
		}
		one, err := s.undisturbed(a)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, one)
		fmt.Fprintf(os.Stderr, "%s\n", one.text())
	}
	return nil
}

// tries is how often an attack is made that other work on this machine disturbs.
const tries = 3

// undisturbed makes an attack, and once more if something happens while this program itself stands still. The last one counts.
func (s *stage) undisturbed(a attack) (one Result, err error) {
	for try := range tries {
		if err := s.ready(); err != nil {
			return one, err
		}
		one, err = s.play(a)
		if s.ctx.Err() != nil {
			return one, s.ctx.Err()
		}
		if err != nil {
			one.Note = err.Error()
		}
		if s.slowed != nil || one.Note != "" {
			// Whoever leads next is not slowed, and a group that has learned patience is another one.
			if err := s.end(); err != nil {
				return one, err
			}
		}
		if try+1 == tries || !one.again() {
			break
		}
		fmt.Fprintf(os.Stderr, "%s; disturbed, so once more\n", one.text())
	}
	return one, nil
}
