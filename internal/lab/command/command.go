// Package command is what the programs of scripts/ that run on network namespaces have in common: how they end, and how
// they read their flags.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Main runs a program until it ends, or until somebody interrupts it: then its context ends.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // who presses Ctrl-C twice is in a hurry
	// A thread in a system call keeps its place among the running ones until Go's monitor notices, which takes up to 10 ms.
	// With places to spare, the client and the boards' answers don't wait for that.
	runtime.GOMAXPROCS(max(16, 4*runtime.NumCPU()))
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		stop()
		os.Exit(1)
	}
}

// Flags returns an empty set of flags of one of the programs.
func Flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "Usage: go run ./scripts/%s [flags]   (as root)\n\n", name)
		f.PrintDefaults()
	}
	return f
}

// Parse reads flags, and nothing else.
func Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("there is no argument %q (see --help)", f.Arg(0))
	}
	return nil
}

// Choose returns those of all whom a flag names, in the order of all, or the usual ones if it names none.
func Choose[T any](flagName, names string, usual, all []T) (chosen []T, err error) {
	if names == "" {
		return usual, nil
	}
	var keys []string
	for _, one := range all {
		keys = append(keys, fmt.Sprint(one))
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
	for i, one := range all {
		if slices.Contains(wanted, keys[i]) {
			chosen = append(chosen, one)
		}
	}
	return chosen, nil
}
