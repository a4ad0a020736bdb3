package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"topdog/internal/lab/webpage"
)

// pageFlag is the flag --page of a command that can show what it does in the browser. It may stand alone,
// and it takes its address as --page=:8080 or as --page :8080.
type pageFlag struct {
	listen string // where the page is wanted, or ""
}

// addPageFlag gives a command the flag, and its arguments to the flag. rootCommand makes what is wrong with them
// a mistake in the command line.
func addPageFlag(c *cobra.Command, usage string) *pageFlag {
	p := &pageFlag{}
	c.Flags().StringVar(&p.listen, "page", "", usage+", at `HOST:PORT`, such as :8080 for a projector; --page alone is this machine only, at a free port")
	c.Flags().Lookup("page").NoOptDefVal = webpage.DefaultListen
	c.Args = func(_ *cobra.Command, args []string) error { return p.take(args) }
	return p
}

// take takes in what is behind `--page`, which the flag cannot have for itself: it may stand alone.
func (p *pageFlag) take(args []string) error {
	switch {
	case len(args) == 1 && p.listen == webpage.DefaultListen:
		p.listen = args[0]
	case len(args) > 0:
		return fmt.Errorf("what is %q? There are only flags here", args[0])
	}
	if p.listen == "" {
		return nil
	}
	if err := webpage.CheckListen(p.listen); err != nil {
		return fmt.Errorf("--page: %w", err)
	}
	return nil
}

// given reports whether somebody wants the page.
func (p *pageFlag) given() bool { return p.listen != "" }
