package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"topdog/internal/config"
	"topdog/internal/console"
)

// This file has what the verbs share: their flags, the daemon that they ask, how they print, and what a shell offers
// behind them.

// configPath is the configuration file, as --config says.
func configPath(c *cobra.Command) string {
	path, _ := c.Flags().GetString("config")
	return path
}

// withSocket gives a command the flag --socket.
func withSocket(c *cobra.Command) *cobra.Command {
	c.Flags().String("socket", "", "the control socket's `path` (default: as configured)")
	return c
}

// daemonOf is the daemon that a command asks. Its socket is where --socket says, or else the configuration, or else where
// it is by default: status must work for users who may not read the configuration.
func daemonOf(c *cobra.Command) *console.Client {
	path, _ := c.Flags().GetString("socket")
	if path == "" {
		path = config.DefaultSocket
		if groups, err := config.LoadGroups(configPath(c)); err == nil {
			path = groups.First().Socket
		}
	}
	return console.Dial(path)
}

// withGroup gives a command the flags --socket and --group. Without --group it is about all groups.
func withGroup(c *cobra.Command) *cobra.Command {
	return withGroupFlag(c, "the `name` of the group, where this board has several (default: all)")
}

// withOneGroup is like withGroup, for a command that cannot be about several groups.
func withOneGroup(c *cobra.Command) *cobra.Command {
	return withGroupFlag(c, "the `name` of the group, needed where this board has several")
}

func withGroupFlag(c *cobra.Command, usage string) *cobra.Command {
	c.Flags().String("group", "", usage)
	completeFlag(c, "group", func() []string {
		names, err := daemonOf(c).Groups(c.Context())
		if err != nil {
			names = configuredGroups(c)
		}
		return names
	})
	return withSocket(c)
}

// severalGroups is the mistake of a command that lacks --group.
func severalGroups(names []string) error {
	return misuse("this board has several groups: say which one with --group: %s", strings.Join(names, ", "))
}

// noGroup is the mistake of a command with a --group that this board does not have.
func noGroup(asked string, names []string) error {
	return misuse("this board has no group %s: it has %s", asked, strings.Join(names, ", "))
}

// askedGroup is what a command asks about one group.
type askedGroup struct {
	name   string // "" where the board has only one, whose name nobody needs to see
	daemon *console.Client
}

// error returns an error that says which group it is about.
func (g askedGroup) error(err error) error {
	if err == nil || g.name == "" {
		return err
	}
	return console.OfGroup(g.name, err)
}

// groupsOf returns the groups that a command is about: that of --group, or all of this board. A daemon of before there
// could be several would ignore a wrong name, so the name is looked up here.
func groupsOf(c *cobra.Command) ([]askedGroup, error) {
	daemon := daemonOf(c)
	names, err := daemon.Groups(c.Context())
	if err != nil {
		return nil, err
	}
	several := len(names) > 1
	if asked, _ := c.Flags().GetString("group"); asked != "" {
		if !slices.Contains(names, asked) {
			return nil, noGroup(asked, names)
		}
		names = []string{asked}
	}
	var groups []askedGroup
	for _, name := range names {
		g := askedGroup{"", daemon}
		if several {
			g.daemon = daemon.Of(name)
		}
		if len(names) > 1 {
			g.name = name
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// oneGroup is like groupsOf, for a command that cannot be about several groups.
func oneGroup(c *cobra.Command) (*console.Client, error) {
	groups, err := groupsOf(c)
	if err != nil {
		return nil, err
	}
	if len(groups) > 1 {
		var names []string
		for _, g := range groups {
			names = append(names, g.name)
		}
		return nil, severalGroups(names)
	}
	return groups[0].daemon, nil
}

// allGroups is the JSON of several groups.
type allGroups[T any] struct {
	Groups []T `json:"groups"`
}

// showAll prints what was found out of each group: as show does, if there is one, and else each under its name.
func showAll[T any](c *cobra.Command, groups []askedGroup, found []T, asText func(io.Writer, T, console.Options) error) error {
	if len(groups) == 1 {
		return show(c, found[0], asText)
	}
	return show(c, allGroups[T]{found}, func(w io.Writer, _ allGroups[T], o console.Options) error {
		for i, g := range groups {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s\n", g.name)
			if err := asText(w, found[i], o); err != nil {
				return err
			}
		}
		return nil
	})
}

// positive refuses a length of time that is not longer than 0.
func positive(flag string, length time.Duration) error {
	if length <= 0 {
		return misuse("--%s must be longer than 0, is %v", flag, length)
	}
	return nil
}

// argument is the first argument, or "".
func argument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// withJSON gives a command the flag --json, which show obeys.
func withJSON(c *cobra.Command) *cobra.Command {
	c.Flags().Bool("json", false, "print JSON, for programs")
	return c
}

func wantsJSON(c *cobra.Command) bool {
	asJSON, _ := c.Flags().GetBool("json")
	return asJSON
}

// show prints what was found out: for people, or as JSON.
func show[T any](c *cobra.Command, found T, asText func(io.Writer, T, console.Options) error) error {
	out := c.OutOrStdout()
	if wantsJSON(c) {
		return writeJSON(out, found, "  ")
	}
	var fits console.Options
	if width, ok := terminalWidth(out); ok {
		fits = console.Options{Width: width, Color: os.Getenv("NO_COLOR") == ""}
	}
	return asText(out, found, fits)
}

// writeJSON prints v as JSON that cannot confuse a terminal.
func writeJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false) // no page shows this
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(console.PrintableJSON(text.Bytes()))
	return err
}

// terminalWidth returns how many columns w has; false if it is not a terminal.
func terminalWidth(w io.Writer) (int, bool) {
	file, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	return width, err == nil
}

// isTerminal reports whether the input or the output of the program is a terminal.
func isTerminal(end any) bool {
	f, ok := end.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// completeTree prepares a command, and those below it, for a shell that asks what to offer. Files are offered for flags whose
// value is one. Shells show the descriptions of flags as they are, so the quotes around the names of values go.
func completeTree(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		f.Usage = usage
		if value == "file" || value == "path" {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // c has it
		}
	})
	for _, below := range c.Commands() {
		completeTree(below)
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

// lights are what a shell offers as the name of a light: every board has these.
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
