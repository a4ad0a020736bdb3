package attack

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// Main runs the program scripts/attack.
func Main() {
	PlayUser()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // who presses Ctrl-C twice is in a hurry
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "attack:", err)
		stop()
		os.Exit(1)
	}
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
)

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("attack", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), "Usage: go run ./scripts/attack [flags]   (as root)\n\n")
		f.PrintDefaults()
	}
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
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("there is no argument %q (see --help)", f.Arg(0))
	}
	if o.lasts < 0 || o.runs < 0 || o.rate < 0 {
		return o, errors.New("--for, --runs and --rate must be positive")
	}
	o.quick = !*long
	o.complete()
	usual := attacks()
	if o.quick {
		usual = slices.DeleteFunc(usual, func(a attack) bool { return !a.quick })
	}
	if o.attacks, err = choose("--attacks", *which, usual, attacks(), attack.String); err != nil {
		return o, err
	}
	usualPlaces := places()
	if o.quick {
		usualPlaces = usualPlaces[1:2] // any machine has it
	}
	if o.places, err = choose("--places", *where, usualPlaces, places(), func(p place) string { return p.Key }); err != nil {
		return o, err
	}
	all := []string{"topdog", "before", "keepalived", "ucarp"}
	usualSystems := []string{"topdog"}
	if !o.quick {
		usualSystems = all
	}
	if o.before == "" {
		all = slices.Delete(all, 1, 2)
	} else if o.quick {
		usualSystems = all[:2]
	}
	o.systems, err = choose("--systems", *systems, slices.DeleteFunc(usualSystems, func(s string) bool { return !slices.Contains(all, s) }), all, func(s string) string { return s })
	return o, err
}

// complete fills in what was not asked for.
func (o *options) complete() {
	lasts, runs := longFor, longRuns
	if o.quick {
		lasts, runs = quickFor, quickRuns
	}
	if o.lasts == 0 {
		o.lasts = lasts
	}
	if o.runs == 0 {
		o.runs = runs
	}
}

// choose picks the named ones of all, in the order of all.
func choose[T any](flagName, names string, usual, all []T, key func(T) string) (chosen []T, err error) {
	if names == "" {
		return usual, nil
	}
	var keys []string
	for _, one := range all {
		keys = append(keys, key(one))
	}
	if names == "list" {
		return nil, fmt.Errorf("%s can be any of %s", flagName, strings.Join(keys, ","))
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.Contains(keys, name) {
			return nil, fmt.Errorf("%s: there is no %q; there are %s", flagName, name, strings.Join(keys, ","))
		}
	}
	for i, one := range all {
		if slices.Contains(wanted, keys[i]) {
			chosen = append(chosen, one)
		}
	}
	return chosen, nil
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
	if err := netns.Available(); err != nil {
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
	// A thread in a system call keeps its place among the running ones until Go's monitor notices. With places to spare,
	// the client and the boards' answers don't wait for that.
	runtime.GOMAXPROCS(max(16, 4*runtime.NumCPU()))
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
	for _, name := range o.systems {
		s := system{Name: name}
		switch name {
		case "topdog":
			s.Key, s.program = "topdog-100ms", filepath.Join(dir, "topdog")
			err = cluster.Build(ctx, s.program)
		case "before":
			s.Key, s.program = "topdog-100ms", o.before
		default:
			s.Key = map[string]string{"keepalived": "keepalived-100ms", "ucarp": "ucarp-1s"}[name]
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

// attackAll attacks every system in every place. What fails is a row that says why.
func (o options) attackAll(ctx context.Context, r *report) error {
	for _, where := range o.places {
		for _, sys := range r.Systems {
			if err := o.attackGroup(ctx, r, sys, where); err != nil {
				return fmt.Errorf("%s, %s: %w", sys.Name, where.Title, err)
			}
		}
	}
	return nil
}

// attackGroup attacks one group in all ways.
func (o options) attackGroup(ctx context.Context, r *report, sys system, where place) (err error) {
	g := &grounds{system: sys, place: where}
	defer func() { err = errors.Join(err, g.clear()) }()
	for _, a := range o.attacks {
		if a.unable(sys, where) != "" {
			continue
		}
		one, err := o.undisturbed(ctx, g, a)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, one)
		fmt.Fprintf(os.Stderr, "%s, %s, %s: %s\n", sys.Name, where.Key, a.Key, one.text())
	}
	return nil
}

// tries is how often an attack is made that other work on this machine disturbs.
const tries = 3

// undisturbed makes an attack, and once more if something happens while this program itself stands still. The last one counts.
func (o options) undisturbed(ctx context.Context, g *grounds, a attack) (one Result, err error) {
	for try := range tries {
		s, err := g.settled(ctx)
		if err != nil {
			return one, err
		}
		one, err = a.run(ctx, s, o)
		if ctx.Err() != nil {
			return one, ctx.Err()
		}
		if err != nil {
			one.Note = err.Error()
		}
		one.System, one.Place, one.Attack = g.system.Name, g.place.Key, a.Key
		if s.slowed != nil || one.Note != "" {
			// Whoever leads next is not slowed, and a group that has learned patience is another one.
			if err := g.clear(); err != nil {
				return one, err
			}
		}
		if try+1 == tries || !a.again(one) {
			break
		}
		fmt.Fprintf(os.Stderr, "%s, %s, %s: %s; disturbed, so once more\n", one.System, one.Place, one.Attack, one.text())
	}
	return one, nil
}

// load reads what --json has written, and puts it together.
func load(paths ...string) (*report, error) {
	all := &report{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var one report
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.add(&one)
	}
	return all, nil
}
