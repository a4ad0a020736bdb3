package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/scenario"
)

// command runs a command line, and returns what it wrote and its exit status.
func command(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		assert.NoError(t, err)
		return f
	}
	out, errs := open("out"), open("err")
	status = execute(context.Background(), args, out, errs)
	read := func(f *os.File) string {
		assert.NoError(t, f.Close())
		text, err := os.ReadFile(f.Name())
		assert.NoError(t, err)
		return string(text)
	}
	return read(out), read(errs), status
}

func TestSimRun(t *testing.T) {
	line := func(s string) []string { return append([]string{"sim", "run", "--for", "4s"}, strings.Fields(s)...) }
	file := filepath.Join(t.TempDir(), "picture.svg")
	for _, tc := range []struct {
		args           string
		stdout, stderr string // what must be in it; "" is that there is nothing
	}{
		{"--crash 5@2s", "board 4 acquired the address", ""},
		{"--crash 5@2s --trace", "5  crashes", ""},
		{"--crash 5@2s --trace text", "board 4 acquired the address", ""},
		{"--crash 5@2s --trace=mermaid", "sequenceDiagram\n", "board 4 acquired the address"},
		{"--crash 5@2s --trace svg", "<svg xmlns=", "board 4 acquired the address"},
		{"--crash 5@2s --trace svg --out " + file, "board 4 acquired the address", ""},
		{"--crash 5@2s --trace --all", "> all: HEARTBEAT", ""},
		{"--trace --trace-from 0 --nodes 2", "1  starts", ""},
		{"--algorithm bully --fanout unicast --crash 5@2s", "bully, 5 boards, fanout unicast", ""},
		{"--priority 2=200 --crash 2@2s", "board 5 acquired the address", ""},
		{"--nodes 3 --loss 10% --duplicate 5% --reorder 5%:3ms --latency exp:1ms --drift 50ppm --seed 9", "heir, 3 boards", ""},
	} {
		stdout, stderr, status := command(t, line(tc.args)...)
		if status != 0 {
			t.Errorf("%s: exit status %d: %s", tc.args, status, stderr)
			continue
		}
		for _, stream := range []struct{ name, got, want string }{{"stdout", stdout, tc.stdout}, {"stderr", stderr, tc.stderr}} {
			if !strings.Contains(stream.got, stream.want) || stream.want == "" && stream.got != "" {
				t.Errorf("%s: %s does not have %q:\n%s", tc.args, stream.name, stream.want, stream.got)
			}
		}
	}
	if picture, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(picture), "<svg") {
		t.Errorf("--out wrote %.20q, %v", picture, err)
	}
}

func TestSimRunJSON(t *testing.T) {
	for _, format := range []string{"", "text", "svg"} {
		args := []string{"sim", "run", "--crash", "5@2s", "--for", "4s", "--json"}
		if format != "" {
			args = append(args, "--trace="+format)
		}
		stdout, stderr, status := command(t, args...)
		var r scenario.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || status != 0 || stderr != "" {
			t.Fatalf("exit status %d, %v, %s", status, err, stderr)
		}
		if r.Algorithm != "heir" || len(r.Faults) != 1 || r.Faults[0].Leader != "4" {
			t.Errorf("the report is %+v", r)
		}
		if trace := len(r.Trace) > 0; trace != (format == "text") {
			t.Errorf("--trace=%s: the trace has %d lines", format, len(r.Trace))
		}
		if picture := strings.HasPrefix(r.Picture, "<svg"); picture != (format == "svg") {
			t.Errorf("--trace=%s: the picture is %.20q", format, r.Picture)
		}
	}
}

// TestSimRunUsage makes mistakes. Each must be called by the flag's name, with what is allowed.
func TestSimRunUsage(t *testing.T) {
	for args, want := range map[string][]string{
		"--algorithm raft":         {"--algorithm", `"raft"`, "heir, bully"},
		"--fanout broadcast":       {"--fanout", "multicast, unicast"},
		"--detector oracle":        {"--detector", "fixed"},
		"--score-from command":     {"--score-from", "priority, age"},
		"--trace=png":              {"--trace", "text, mermaid, svg"},
		"--trace png":              {"--trace", "text, mermaid, svg"},
		"--nodes 0":                {"--nodes", "1 to 255"},
		"--nodes many":             {"--nodes", "many"},
		"--heartbeat 1ms":          {"--heartbeat", "1ms is less than 10ms"},
		"--for 0s":                 {"--for", "between 0 and 24h"},
		"--crash 6@2s":             {"--crash", "only 1 to 5"},
		"--crash 5":                {"--crash", "5@2s"},
		"--crash 5@20s":            {"--crash", "--for"},
		"--pause 3@2s":             {"--pause", "3@2s+500ms"},
		"--partition 1,2@2s":       {"--partition", "1,2/3,4@2s"},
		"--one-way 1@2s":           {"--one-way", "1,2/3,4@2s"},
		"--heal soon":              {"--heal", "6s"},
		"--notice 2":               {"--notice", "--crash"},
		"--loss 120%":              {"--loss", "0% to 100%"},
		"--duplicate x":            {"--duplicate", "0% to 100%"},
		"--reorder 10%":            {"--reorder", "10%:5ms"},
		"--latency warp:1ms":       {"--latency", "uniform:100us-3ms"},
		"--drift 1s":               {"--drift", "50ppm"},
		"--priority 3=300":         {"--priority", "0 to 254"},
		"--priority 8=1":           {"--priority", "only 1 to 5"},
		"--trace-from yesterday":   {"--trace-from", "1.5s"},
		"--out x":                  {"--out", "--trace"},
		"--seed -1":                {"--seed", "-1"},
		"svg":                      {`"svg"`, "only flags"},
		"--trace=svg svg":          {`"svg"`, "only flags"},
		"--crash 5@2s --what else": {"--what"},
	} {
		stdout, stderr, status := command(t, append([]string{"sim", "run"}, strings.Fields(args)...)...)
		if status != exitUsage || stdout != "" {
			t.Errorf("%s: exit status %d, want %d; stdout %q", args, status, exitUsage, stdout)
		}
		for _, want := range append(want, "see: topdog sim run --help") {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: the error does not say %q: %s", args, want, stderr)
			}
		}
	}
	if _, stderr, status := command(t, "sim", "walk"); status != exitUsage || !strings.Contains(stderr, "walk") {
		t.Errorf("sim walk: exit status %d: %s", status, stderr)
	}
}

func TestSimRunOutFails(t *testing.T) {
	_, stderr, status := command(t, "sim", "run", "--trace", "--for", "1s", "--out", "/nonexistent/x.txt")
	if status != exitFailure || !strings.Contains(stderr, "--out") || !strings.Contains(stderr, "/nonexistent/x.txt") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
