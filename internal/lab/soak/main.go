package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/scene"
)

// Main runs the program scripts/soak.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	lasts  time.Duration
	seed   uint64
	strict bool
	kinds  []kind
	scene  string // a file
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), "Usage: go run ./scripts/soak [flags]   (as root)\n\n")
		f.PrintDefaults()
	}
	f.DurationVar(&o.lasts, "for", 2*time.Hour, "`how long`")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "choose the faults by this `number`; one is drawn otherwise")
	f.BoolVar(&o.strict, "strict", false, "three voters (algorithm = \"strict\"), up to two faults at once, and one bound: never two that answer")
	f.StringVar(&o.scene, "scene", "", "play the scene of this `file` once, and nothing else")
	faults := f.String("faults", "", "only these `keys`, separated by commas; \"list\" lists them")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("there is no argument %q (see --help)", f.Arg(0))
	}
	if o.lasts <= 0 {
		return o, fmt.Errorf("--for %v: must be positive", o.lasts)
	}
	o.kinds, err = chooseKinds(*faults)
	return o, err
}

// chooseKinds picks the named kinds, or all.
func chooseKinds(names string) (chosen []kind, err error) {
	all := allKinds()
	if names == "" {
		return all, nil
	}
	var keys []string
	for _, k := range all {
		keys = append(keys, k.key)
	}
	if names == "list" {
		return nil, fmt.Errorf("--faults can be any of %s", strings.Join(keys, ","))
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.Index(keys, name)
		if i < 0 {
			return nil, fmt.Errorf("--faults: there is no %q; there are %s", name, strings.Join(keys, ","))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := netns.Available(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "topdog-soak")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := cluster.Program{Path: filepath.Join(dir, "topdog")}
	if err := cluster.Build(ctx, program.Path); err != nil {
		return err
	}
	if err := raisePriority(); err != nil {
		return err
	}
	// A thread in a system call keeps its place among the running ones until Go's monitor notices.
	// With places to spare, the client and the boards' answers don't wait for that.
	runtime.GOMAXPROCS(max(16, 4*runtime.NumCPU()))
	if o.scene != "" {
		return o.play(ctx, program)
	}
	return o.soak(ctx, program)
}

// play plays a scene on boards that do not run yet.
func (o options) play(ctx context.Context, program cluster.Program) error {
	text, err := os.ReadFile(o.scene)
	if err != nil {
		return err
	}
	played, err := scene.Parse(o.scene, string(text))
	if err != nil {
		return err
	}
	s, err := open(ctx, program, o.strict, os.Stdout)
	if err != nil {
		return err
	}
	began := time.Now()
	err = played.Play(s, o.seed)
	client, held := s.Asker.Report(began), s.Cluster.Holders.Since(began)
	fmt.Printf("%s: moves %d, nobody answered for %s, two boards had the address for %s\n", o.scene, held.Moves(),
		millis(client.Outage.Duration()), millis(held.Overlap()))
	return errors.Join(err, s.close())
}

// raisePriority gives all threads of this process the priority of topdog's unit. A new thread has
// that of the one that makes it. The client, the boards' answers and the places are this process, so
// nobody is ahead.
func raisePriority() error {
	err := netns.EachThread(os.Getpid(), func(id int) error { return unix.Setpriority(unix.PRIO_PROCESS, id, cluster.ServiceNice) })
	if err != nil {
		return fmt.Errorf("raise the priority to that of topdog's unit (%d): %w", cluster.ServiceNice, err)
	}
	return nil
}

// soak runs, and writes the table. The error says that a judge did not accept a trial.
func (o options) soak(ctx context.Context, program cluster.Program) error {
	atOnce := 1
	if o.strict {
		atOnce = 2
	}
	fmt.Printf("seed %d, %v, %d kinds of faults, %d at once at most\n", o.seed, o.lasts, len(o.kinds), atOnce)
	s, err := open(ctx, program, o.strict, os.Stdout)
	if err != nil {
		return err
	}
	err = s.run(newChooser(o.seed, o.kinds, atOnce), time.Now().Add(o.lasts))
	err = errors.Join(err, s.close())
	fmt.Println()
	err = errors.Join(err, s.table.write(os.Stdout, o.kinds))
	if n := len(s.table.refused); n > 0 {
		err = errors.Join(err, fmt.Errorf("the judges did not accept %d of %d trials (seed %d): %v", n, s.table.trials, o.seed, s.table.refused))
	}
	return err
}
