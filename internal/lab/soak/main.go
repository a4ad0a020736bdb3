package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/command"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
)

// Main runs the program scripts/soak.
func Main() { command.Main("soak", run) }

// options are the flags.
type options struct {
	lasts  time.Duration
	seed   uint64
	strict bool
	groups bool // each board is in a second group too
	second bool // each board has a second path to the others
	kinds  []kind
	scene  string // a file
}

func parse(args []string) (o options, err error) {
	f := command.Flags("soak")
	f.DurationVar(&o.lasts, "for", 2*time.Hour, "`how long`")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "choose the faults by this `number`; one is drawn otherwise")
	f.BoolVar(&o.strict, "strict", false, "three voters (algorithm = \"strict\"), up to two faults at once, and one bound: never two that answer")
	f.BoolVar(&o.groups, "two-groups", false, "each board is in a second group too, of which never two boards may answer; everything else is asked of the first")
	f.BoolVar(&o.second, "second-path", false, "each board has a second path, which has faults too; never two boards may answer, on whichever side of a split LAN")
	f.StringVar(&o.scene, "scene", "", "play the scene of this `file` once, and nothing else")
	faults := f.String("faults", "", "only these `keys`, separated by commas; \"list\" lists them")
	if err := command.Parse(f, args); err != nil {
		return o, err
	}
	if o.lasts <= 0 {
		return o, fmt.Errorf("--for %v: must be positive", o.lasts)
	}
	kinds := allKinds()
	if o.second {
		kinds = withSecondPath(kinds)
	}
	o.kinds, err = command.Choose("--faults", *faults, kinds, kinds)
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := errors.Join(netns.Available(), cluster.RaisePriority()); err != nil {
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
	s, err := o.open(ctx, program, os.Stdout)
	if err != nil {
		return err
	}
	began := time.Now()
	err = played.Play(s, o.seed)
	client, held := s.Asker.Report(began), s.Cluster.Holders.Since(began)
	fmt.Printf("%s: moves %d, nobody answered for %s, two boards had the address for %s\n", o.scene, held.Moves(),
		observe.Millis(client.Outage.Duration()), observe.Millis(held.Overlap()))
	return errors.Join(err, s.close())
}

// soak runs, and writes the table. The error says that a judge did not accept a trial.
func (o options) soak(ctx context.Context, program cluster.Program) error {
	atOnce := 1
	if o.strict {
		atOnce = 2
	}
	fmt.Printf("seed %d, %v, %d kinds of faults, %d at once at most\n", o.seed, o.lasts, len(o.kinds), atOnce)
	s, err := o.open(ctx, program, os.Stdout)
	if err != nil {
		return err
	}
	err = s.run(newChooser(o.seed, o.kinds, atOnce), time.Now().Add(o.lasts))
	err = errors.Join(err, s.close())
	fmt.Println()
	err = errors.Join(err, s.table.write(os.Stdout, o.kinds))
	if n := len(s.table.refused); n > 0 {
		err = errors.Join(err, fmt.Errorf("the judges did not accept %d of %d trials (seed %d): %v", n, s.table.all.trials, o.seed, s.table.refused))
	}
	return err
}
