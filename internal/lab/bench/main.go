package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// priorityRaised marks the process that has raised its priority.
const priorityRaised = "TOPDOG_BENCH_ELEVATED"

// Main runs the program scripts/bench.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // who presses Ctrl-C twice is in a hurry
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	plan   plan
	json   string
	svg    string
	report string
	page   string
	from   string
	steps  bool
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), "Usage: go run ./scripts/bench [flags]   (as root)\n\n")
		f.PrintDefaults()
	}
	long := f.Bool("long", false, "measure everything (about two hours) instead of the quick form (seven to ten minutes)")
	runs := f.Int("runs", 0, "`n` runs of each event (default 5, or 20 in the long form; 2 or 10 of those that take long)")
	systems := f.String("systems", "", "only these `keys`, separated by commas; \"list\" lists them")
	events := f.String("events", "", "only these `keys`, or none; \"list\" lists them")
	other := f.String("beside", "", "measure another build of topdog as well: this `program`")
	parts := f.String("parts", "", "only these `parts` of failures,starts,calm,loss,idle,service,checks")
	f.StringVar(&o.json, "json", "", "write all figures to this `file`")
	f.StringVar(&o.svg, "svg", "", "draw the pictures into this `directory`")
	f.StringVar(&o.report, "report", "-", "write the tables to this `file`, or - for the standard output")
	f.StringVar(&o.page, "page", "", "put the tables into this Markdown `file`, between its two marks")
	f.StringVar(&o.from, "from", "", "measure nothing: show the figures of this `file` that --json has written")
	alone := f.Bool("alone", false, "one group of boards of each system at a time: slower, and no group of the same system is made or taken apart beside a run")
	logs := f.String("logs", "", "write what the boards print in each run of an event into this `directory`")
	f.BoolVar(&o.steps, "trace", false, "measure one failover of topdog step by step, and nothing else")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("there is no argument %q (see --help)", f.Arg(0))
	}
	o.plan = quickPlan()
	if *long {
		o.plan = longPlan()
	}
	o.plan.logs = *logs
	if *alone {
		o.plan.replicas = func(system) int { return 1 }
	}
	if *runs < 0 {
		return o, fmt.Errorf("--runs %d: must be positive", *runs)
	}
	if *runs > 0 {
		o.plan.setRuns(*runs)
	}
	if o.plan.systems, err = choose("--systems", *systems, o.plan.systems, allSystems()); err != nil {
		return o, err
	}
	if *other != "" {
		if o.plan.systems, err = beside(o.plan.systems, *other); err != nil {
			return o, err
		}
	}
	if o.plan.events, err = choose("--events", *events, o.plan.events, allEvents()); err != nil {
		return o, err
	}
	if o.plan.parts, err = choose("--parts", *parts, o.plan.parts, allParts); err != nil {
		return o, err
	}
	o.plan.fit()
	return o, nil
}

// choose picks the named ones of all, in the order of all.
func choose[T fmt.Stringer](flagName, names string, usual, all []T) ([]T, error) {
	if names == "" {
		return usual, nil
	}
	var keys []string
	for _, one := range all {
		keys = append(keys, one.String())
	}
	if names == "list" {
		return nil, fmt.Errorf("%s can be any of %s", flagName, strings.Join(keys, ","))
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if name != "" && !slices.Contains(keys, name) {
			return nil, fmt.Errorf("%s: there is no %q; there are %s", flagName, name, strings.Join(keys, ","))
		}
	}
	var chosen []T
	for i, one := range all {
		if slices.Contains(wanted, keys[i]) {
			chosen = append(chosen, one)
		}
	}
	return chosen, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.from != "" {
		r, err := load(o.from)
		if err != nil {
			return err
		}
		return o.publish(r)
	}
	return o.measure(ctx)
}

// measure measures on this machine, and publishes the figures.
func (o options) measure(ctx context.Context) error {
	if err := netns.Available(); err != nil {
		return err
	}
	if err := raisePriority(); err != nil {
		return err
	}
	// A thread in a system call keeps its place among the running ones until Go's
	// monitor notices, which takes up to 10 ms. With places to spare, the client
	// and the boards' answers don't wait for that.
	runtime.GOMAXPROCS(max(16, 4*runtime.NumCPU()))
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
	if o.steps {
		return o.trace(ctx, show, dir)
	}
	r, err := measure(ctx, o.plan, dir, show)
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

// raisePriority starts this program anew with the priority of topdog's unit. All that is measured
// runs with it, and so do the client and the boards' answers, which are this process: nobody is
// ahead. Linux gives
// a priority to threads, and Go has several by now, so it must be had from the start.
func raisePriority() error {
	if os.Getenv(priorityRaised) != "" {
		return os.Unsetenv(priorityRaised) // the boards need not know
	}
	runtime.LockOSThread() // it is the thread that calls execve which stays
	defer runtime.UnlockOSThread()
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, cluster.ServiceNice); err != nil {
		return fmt.Errorf("raise the priority to that of topdog's unit (%d): %w", cluster.ServiceNice, err)
	}
	path, err := os.Executable()
	if err == nil {
		err = unix.Exec(path, os.Args, append(os.Environ(), priorityRaised+"=1"))
	}
	return fmt.Errorf("start anew with a priority of %d: %w", cluster.ServiceNice, err)
}
