package main

import (
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeTree decides what a shell offers behind each verb and each flag. The names of files, which
// cobra offers everywhere, are right for few of them.
func completeTree(c *cobra.Command) {
	if c.ValidArgsFunction == nil && !strings.Contains(c.Use, " ") { // it takes no arguments
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	noFiles := func(f *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(f)
		_, decided := c.GetFlagCompletionFunc(f.Name)
		if value != "" && value != "file" && value != "path" && !decided { // "" is a switch
			completeFlag(c, f.Name, nothing)
		}
	}
	c.Flags().VisitAll(noFiles)
	c.PersistentFlags().VisitAll(noFiles)
	for _, below := range c.Commands() {
		completeTree(below)
	}
}

// plainUsage takes the marks from the descriptions of flags that name the value in the help: shells show
// the descriptions as they are.
func plainUsage(c *cobra.Command) {
	plain := func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) }
	c.Flags().VisitAll(plain)
	c.PersistentFlags().VisitAll(plain)
	for _, below := range c.Commands() {
		plainUsage(below)
	}
}

// completeFlag makes a shell offer these values of a flag, and no files.
func completeFlag(c *cobra.Command, name string, values func() []string) {
	offer := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.RegisterFlagCompletionFunc(name, offer); err != nil {
		panic(err) // the flag does not exist: a mistake of the caller
	}
}

// nothing is offered where only the user knows the value.
func nothing() []string { return nil }

// lights are those that every board has.
func lights() []string { return []string{"ACT", "none"} }

// interfaceNames are the interfaces that a group can be on.
func interfaceNames() (names []string) {
	links, err := net.Interfaces()
	if err != nil {
		return nil // nothing is offered then
	}
	for _, link := range links {
		if link.Flags&net.FlagLoopback == 0 {
			names = append(names, link.Name)
		}
	}
	return names
}
