package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// Every command has a page with each of its flags, and every key of the configuration is in a page.
func TestManualHasEverything(t *testing.T) {
	dir := t.TempDir()
	must(t, manual.Write(rootCommand(), pageOf(t, "operations.md"), manual.Foot{Version: "1", Date: time.Unix(0, 0)}, dir))
	read := func(name string) string {
		page, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return string(page)
	}
	has := func(page, what, where string) {
		if !strings.Contains(page, what) {
			t.Errorf("%s has no %q", where, what)
		}
	}
	pages := 0
	var holds func(c *cobra.Command)
	holds = func(c *cobra.Command) {
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		page := read("man1/" + name + ".1")
		has(page, name+" - "+c.Short, name)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { has(page, `\fB--`+f.Name+`\fP`, name) })
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				has(page, `\fB`+name+"-"+below.Name()+`(1)\fP`, name)
				holds(below)
			}
		}
	}
	holds(rootCommand())
	const few = 10 // if there are fewer, this test does not see them any more
	if pages < few {
		t.Errorf("only %d pages", pages)
	}
	file := read("man5/topdog.toml.5")
	for _, key := range documented.ConfigKeys(config.Reference()) {
		has(file, ".SS "+key+"\n", "topdog.toml.5")
	}
	for _, key := range append(check.Kinds(), "every", "timeout", "rise", "fall", "when", "grace") {
		has(file, key+" = ", "topdog.toml.5")
	}
}

// pageOf reads a page of the documentation.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	assert.NoError(t, err)
	return string(text)
}

// The exit statuses of the program are those of the manual.
func TestEveryExitStatusIsDocumented(t *testing.T) {
	doc := pageOf(t, "operations.md")
	for _, status := range []int{0, exitFailure, exitUsage, 3, 4, exitConfig} {
		if !strings.Contains(doc, "| "+strconv.Itoa(status)+" | ") {
			t.Errorf("docs/operations.md does not explain the exit status %d", status)
		}
	}
}

// executable is this test binary, for programs that run it.
func executable(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	assert.NoError(t, err)
	return path
}
