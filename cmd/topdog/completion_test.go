package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/documented"
	"topdog/internal/lab/manual"
)

// What a shell is told to offer, and whether it may offer files.
func TestCompletion(t *testing.T) {
	const noFiles, files = ":4", ":0"
	for _, tt := range []struct {
		line []string
		want string
	}{
		{[]string{"stat"}, "status\tShow who holds the address, and all boards\n" + noFiles},
		{[]string{"status", ""}, noFiles},
		{[]string{"status", "--sock"}, "--socket\tthe control socket's path (default: as configured)\n" + noFiles},
		{[]string{"status", "--socket", ""}, files},
		{[]string{"run", "--config", ""}, files},
		{[]string{"init", ""}, noFiles},
		{[]string{"init", "--led", ""}, "ACT\nnone\n" + noFiles},
		{[]string{"init", "--group", ""}, noFiles},
		{[]string{"led", "test", "A"}, "ACT\nnone\n" + noFiles},
		{[]string{"sim", "run", "--fanout", ""}, "multicast\nunicast\n" + noFiles},
		{[]string{"sim", "compare", "--svg", ""}, files},
	} {
		got := executed(t, append([]string{cobra.ShellCompRequestCmd}, tt.line...)...)
		if diff := cmp.Diff(tt.want+"\n", got.stdout); diff != "" || got.status != 0 {
			t.Errorf("%q: %v (-want +got):\n%s", tt.line, got, diff)
		}
	}
}

// Every verb has a page with each of its flags, and every key of the configuration is in a page.
func TestManualHasEverything(t *testing.T) {
	operations, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	pages, err := manual.Pages(func(command ...string) (string, error) {
		o := executed(t, append(command, "--help")...)
		if o.status != 0 {
			return "", errors.New(o.stderr)
		}
		return o.stdout, nil
	}, string(operations), "1", "2026-01-01")
	must(t, err)
	read := func(name string) string {
		if pages[name] == "" {
			t.Fatalf("there is no %s", name)
		}
		return strings.ReplaceAll(pages[name], `\-`, "-")
	}
	has := func(page, what, where string) {
		if !strings.Contains(page, what) {
			t.Errorf("%s has no %q", where, what)
		}
	}
	all, verbs := read("man1/topdog.1"), 0
	for _, verb := range rootCommand().Commands() {
		if verb.Hidden {
			continue
		}
		verbs++
		name := "topdog-" + verb.Name()
		has(all, ".BR "+name+" (1)\n", "topdog.1")
		page := read("man1/" + name + ".1")
		has(page, name+" - ", name)
		for _, c := range append(verb.Commands(), verb) {
			if c != verb {
				has(page, ".SS "+c.CommandPath(), name)
			}
			c.LocalFlags().VisitAll(func(f *pflag.Flag) { has(page, "--"+f.Name, name) })
		}
	}
	const few = 10 // if there are fewer, this test does not see them any more
	if verbs < few {
		t.Errorf("only %d verbs", verbs)
	}
	file := read("man5/topdog.toml.5")
	for _, key := range documented.ConfigKeys(config.Reference()) {
		has(file, ".TP\n.B "+key+"\n", "topdog.toml.5")
	}
	for _, key := range append(check.Kinds(), "every", "timeout", "rise", "fall", "when", "grace") {
		has(file, key+" = ", "topdog.toml.5")
	}
}

// executable is this test binary, for programs that run it.
func executable(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	assert.NoError(t, err)
	return path
}
