package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/command"
	"topdog/internal/lab/netns"
)

// Main runs the program scripts/bench.
func Main() { command.Main("bench", run) }

// plan says what is measured, and for how long.
type plan struct {
	form    string // quick or long
	systems []*system
	events  []*event
	parts   []string

	check    bool                         // that each system works at all, before all else
	binary   bool                         // the size of topdog for arm64
	runs     int                          // of each event
	seldom   int                          // of each event that takes long
	repeats  int                          // of an event that was disturbed
	groups   func(*system) (together int) // groups of one system that do
	starts   int                          // cold starts
	boards   []int                        // in a calm group
	rest     time.Duration                // before, until what boards do only when they meet is over
	calm     time.Duration                // how long each of them is watched
	together bool                         // calm groups of all systems at once
	losses   []float64
	lossFor  time.Duration // how long a group is watched while nobody fails
	lossRuns int           // pulled cables under each loss
	idleFor  time.Duration // how long a group is watched that loses nothing
	curveFor time.Duration // how long the groups of a point of a curve are watched, each amid something else
	abreast  int           // points of curves at once
	logs     string        // the directory for what boards print, or ""
}

// runsOf is how often an event is run.
func (p *plan) runsOf(e *event) int {
	if e.is("seldom") {
		return p.seldom
	}
	return p.runs
}

// quickPlan is for a laptop: it says in seven to ten minutes whether topdog does what it
// promises, and not much about rare cases.
func quickPlan() plan {
	return plan{
		form: "quick",
		systems: named(allSystems(), "topdog-100ms", "topdog-10ms", "keepalived-1s", "keepalived-100ms", "keepalived-20ms",
			"ucarp-1s", "topdog-service", "keepalived-1s-process", "keepalived-1s-script"),
		events: named(allEvents(), "cable-pulled", "frames-dropped", "sigkill", "sigterm",
			"both-frozen", "bursts", "pauses", "deaf", "mute", "cut-300ms", "cut-3s",
			"service-killed", "service-frozen"),
		parts:    []string{"failures", "starts", "calm", "loss", "service", "checks"},
		curveFor: 15 * time.Second, abreast: 2,
		runs: 5, seldom: 2, repeats: 2, starts: 1,
		groups: func(s *system) int {
			if s.slow() {
				return 7
			}
			return 2
		},
		boards: []int{3}, calm: 10 * time.Second, together: true,
		losses: []float64{0.4}, lossFor: 12 * time.Second, idleFor: time.Minute,
	}
}

// longPlan is everything but the curves.
func longPlan() plan {
	return plan{
		form: "long", systems: without(allSystems(), func(s *system) bool { return s.onlyCurve }), events: allEvents(),
		parts:    without(partNames(), func(name string) bool { return name == partCurve }),
		curveFor: time.Minute, abreast: 2,
		check: true, binary: true, runs: 20, seldom: 10, starts: 10,
		groups: func(s *system) int {
			if s.slow() || s.served() {
				return 4
			}
			return 2
		},
		boards: []int{3, 10, 50}, rest: 30 * time.Second, calm: 15 * time.Second,
		losses: []float64{0.05, 0.2, 0.4}, lossFor: 10 * time.Minute, idleFor: 10 * time.Minute, lossRuns: 20,
	}
}

func partNames() (names []string) {
	for _, part := range parts {
		names = append(names, part.name)
	}
	return names
}

// fit leaves out the systems and events that no part of the plan is about.
func (p *plan) fit() {
	wanted := map[bool]bool{} // whether something that is about services, or not
	for _, part := range p.parts {
		wanted[part == "service" || part == "checks"] = true
	}
	p.systems = without(p.systems, func(s *system) bool { return !wanted[s.served()] })
	p.events = without(p.events, func(e *event) bool { return !wanted[e.is("served")] })
}

// options are the flags.
type options struct {
	plan   plan
	lines  string
	svg    string
	report string
	page   string
	from   string
	trace  bool
}

func parse(args []string) (o options, err error) {
	f := command.Flags("bench")
	long := f.Bool("long", false, "measure everything but the curve (about two hours) instead of the quick form (seven to ten minutes)")
	runs := f.Int("runs", 0, "`n` runs of each event (default 5, or 20 in the long form; 2 or 10 of those that take long)")
	systems := f.String("systems", "", "only these `keys`, separated by commas; \"list\" lists them")
	events := f.String("events", "", "only these `keys`, or none; \"list\" lists them")
	other := f.String("beside", "", "measure another build of topdog as well, or of keepalived if it is called so: this `program`")
	only := f.String("parts", "", "only these `parts` of "+strings.Join(partNames(), ","))
	f.StringVar(&o.lines, "lines", "", "write all figures to this `file`, a line for each run, for benchstat")
	f.StringVar(&o.svg, "svg", "", "draw the pictures into this `directory`")
	f.StringVar(&o.report, "report", "-", "write the tables to this `file`, or - for the standard output")
	f.StringVar(&o.page, "page", "", "put the tables into this Markdown `file`, between its two marks")
	f.StringVar(&o.from, "from", "", "measure nothing: show the figures of this `file` that --lines has written")
	with6 := f.Bool("ipv6", false, "each group has an IPv6 address too, and a second client that asks at it: what both see stands in one table")
	alone := f.Bool("alone", false, "one group of boards of each system at a time: slower, and no group of the same system "+
		"is made or taken apart beside a run")
	boards := f.Int("boards", 0, "the steady state of groups of `n` boards (default 3, or 3, 10 and 50 in the long form)")
	logs := f.String("logs", "", "write what the boards print in each run of an event into this `directory`")
	f.BoolVar(&o.trace, "trace", false, "measure one failover of topdog step by step, and nothing else")
	if err := command.Parse(f, args); err != nil {
		return o, err
	}
	if *runs < 0 {
		return o, fmt.Errorf("--runs %d: must be positive", *runs)
	}
	o.plan = quickPlan()
	if *long {
		o.plan = longPlan()
	}
	p := &o.plan
	p.logs = *logs
	switch {
	case *boards < 0 || *boards > 50:
		return o, fmt.Errorf("--boards %d: must be 1 to 50", *boards)
	case *boards > 0:
		p.boards = []int{*boards}
	}
	if *alone {
		p.groups, p.abreast = func(*system) int { return 1 }, 1
	}
	if *only == partCurve {
		p.systems = without(allSystems(), func(s *system) bool { return s.curve == "" })
	}
	if *runs > 0 {
		p.runs, p.seldom, p.starts, p.lossRuns = *runs, *runs, min(p.starts, *runs), min(p.lossRuns, *runs)
	}
	if p.systems, err = command.Choose("--systems", *systems, p.systems, allSystems()); err != nil {
		return o, err
	}
	if *other != "" {
		if p.systems, err = beside(p.systems, *other); err != nil {
			return o, err
		}
	}
	for _, s := range p.systems {
		s.IPv6 = *with6
	}
	if p.events, err = command.Choose("--events", *events, p.events, slices.Concat(allEvents(), faultEvents())); err != nil {
		return o, err
	}
	p.parts, err = command.Choose("--parts", *only, p.parts, partNames())
	p.fit()
	return o, err
}

// named returns those of all that have these names.
func named[T any](all []T, names ...string) []T {
	return without(all, func(one T) bool { return !slices.Contains(names, fmt.Sprint(one)) })
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.from != "" {
		file, err := os.Open(o.from)
		if err != nil {
			return err
		}
		defer file.Close()
		r, err := read(file)
		if err != nil {
			return fmt.Errorf("%s: %w", o.from, err)
		}
		return o.publish(r)
	}
	return o.measure(ctx)
}

// measure measures on this machine, and publishes the figures.
func (o options) measure(ctx context.Context) error {
	if err := errors.Join(netns.Available(), cluster.RaisePriority()); err != nil {
		return err
	}
	debug.SetGCPercent(400)

	if o.plan.logs != "" {
		if err := os.MkdirAll(o.plan.logs, 0o755); err != nil {
			return fmt.Errorf("make the directory of --logs: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "topdog-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	show := newProgress(os.Stderr)
	defer show.close()
	if o.trace {
		return o.traceFailover(ctx, show, dir)
	}
	r, err := measureAll(ctx, o.plan, dir, show)
	show.close()
	if r == nil {
		return err
	}
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "bench: interrupted; this is what was measured until then")
		err = nil
	}
	return errors.Join(err, o.publish(r))
}

// publish writes the figures in every form that was asked for. The lines come
// first: all else can be made of them.
func (o options) publish(r *record) error {
	var errs []error
	if o.lines != "" {
		errs = append(errs, write(o.lines, r.write))
	}
	if o.report != "" {
		errs = append(errs, write(o.report, func(w io.Writer) error { return r.report(w, false) }))
	}
	if o.page != "" {
		errs = append(errs, r.insertInto(o.page))
	}
	if o.svg != "" {
		errs = append(errs, os.MkdirAll(o.svg, 0o755))
		for _, c := range charts {
			// A session of some parts leaves the pictures of the others alone.
			if path := filepath.Join(o.svg, "bench-"+c.name+".svg"); r.series(c.bench, nil) != nil {
				errs = append(errs, write(path, func(w io.Writer) error { return c.draw(w, r) }))
			}
		}
		for _, c := range curveCharts {
			if path := filepath.Join(o.svg, "bench-"+c.name+".svg"); r.series(curve, nil) != nil {
				errs = append(errs, write(path, func(w io.Writer) error { return c.draw(w, r) }))
			}
		}
	}
	return errors.Join(errs...)
}

// write writes a file, or the standard output for "-".
func write(path string, content func(io.Writer) error) error {
	if path == "-" {
		return content(os.Stdout)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}
