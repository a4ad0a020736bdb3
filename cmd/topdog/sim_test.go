package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/scenario"
)

func TestSimRun(t *testing.T) {
	line := func(s string) []string { return append([]string{"sim", "run", "--for", "4s"}, strings.Fields(s)...) }
	file := filepath.Join(t.TempDir(), "picture.svg")
	for _, tc := range []struct {
		args           string
		stdout, stderr string // what must be in it; "" is that there is nothing on standard error
	}{
		{"--kill 5@2s", "board 4 acquired the address", ""},
		{"--kill 5@2s --trace", "5  crashes", ""},
		{"--kill 5@2s --trace text", "board 4 acquired the address", ""},
		{"--kill 5@2s --trace=mermaid", "sequenceDiagram\n", "board 4 acquired the address"},
		{"--kill 5@2s --trace svg", "<svg xmlns=", "board 4 acquired the address"},
		{"--kill 5@2s --trace svg --out " + file, "board 4 acquired the address", ""},
		{"--kill 5@2s --trace --all", "> all: HEARTBEAT", ""},
		{"--trace --trace-from 0 --nodes 2", "1  starts", ""},
		{"--algorithm bully --fanout unicast --kill 5@2s", "bully, 5 boards, fanout unicast", ""},
		{"--priority 2=200 --kill 2@2s", "board 5 acquired the address", ""},
		{"--nodes 3 --loss 10% --duplicate 5% --reorder 5%:3ms --latency exp:1ms --drift 50ppm --seed 9", "heir, 3 boards", ""},
	} {
		o := executed(t, line(tc.args)...)
		o.want(t, 0, tc.args, tc.stdout)
		if !strings.Contains(o.stderr, tc.stderr) || tc.stderr == "" && o.stderr != "" {
			t.Errorf("%s: want %q on standard error, got %v", tc.args, tc.stderr, o)
		}
	}
	if picture, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(picture), "<svg") {
		t.Errorf("--out wrote %.20q, %v", picture, err)
	}
}

func TestSimRunJSON(t *testing.T) {
	for _, format := range []string{"", "text", "svg"} {
		args := []string{"sim", "run", "--kill", "5@2s", "--for", "4s", "--json"}
		if format != "" {
			args = append(args, "--trace="+format)
		}
		o := executed(t, args...)
		var r scenario.Report
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.status != 0 || o.stderr != "" {
			t.Fatalf("%v, %v", err, o)
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
		"--algorithm raft":        {"--algorithm", `"raft"`, "heir, bully"},
		"--fanout broadcast":      {"--fanout", "multicast, unicast"},
		"--detector oracle":       {"--detector", "fixed"},
		"--score-from command":    {"--score-from", "priority, age"},
		"--trace=png":             {"--trace", "text, mermaid, svg"},
		"--trace png":             {"--trace", "text, mermaid, svg"},
		"--nodes 0":               {"--nodes", "1 to 255"},
		"--nodes many":            {"--nodes", "many"},
		"--heartbeat 1ms":         {"--heartbeat", "1ms is less than 10ms"},
		"--for 0s":                {"--for", "between 0 and 24h"},
		"--kill 6@2s":             {"--kill", "only 1 to 5"},
		"--kill 5":                {"--kill", "5@2s"},
		"--kill 5@20s":            {"--kill", "--for"},
		"--split 1,2@2s":          {"--split", "1,2/3,4@2s"},
		"--one-way 1@2s":          {"--one-way", "1,2/3,4@2s"},
		"--freeze 3":              {"--freeze", "+500ms"},
		"--join soon":             {"--join", "2s"},
		"--notice 2":              {"--notice", "--kill"},
		"--loss 120%":             {"--loss", "0% to 100%"},
		"--duplicate x":           {"--duplicate", "0% to 100%"},
		"--reorder 10%":           {"--reorder", "10%:5ms"},
		"--latency warp:1ms":      {"--latency", "uniform:100us-3ms"},
		"--drift 1s":              {"--drift", "50ppm"},
		"--priority 3=300":        {"--priority", "0 to 254"},
		"--priority 8=1":          {"--priority", "only 1 to 5"},
		"--trace-from yesterday":  {"--trace-from", "1.5s"},
		"--out x":                 {"--out", "--trace"},
		"--seed -1":               {"--seed", "-1"},
		"svg":                     {`"svg"`, "the value of a flag"},
		"--trace=svg svg":         {`"svg"`, "the value of a flag"},
		"--kill 5@2s --what else": {"--what"},
	} {
		o := executed(t, append([]string{"sim", "run"}, strings.Fields(args)...)...)
		o.want(t, exitUsage, args, append(want, "see: topdog sim run --help")...)
		assert.Is(t, "", o.stdout, "%s: standard output", args)
	}
	executed(t, "sim", "walk").want(t, exitUsage, "sim walk", `"walk"`, "neither a command")
}

func TestSimRunOutFails(t *testing.T) {
	o := executed(t, "sim", "run", "--trace", "--for", "1s", "--out", "/nonexistent/x.txt")
	o.want(t, exitFailure, "a file that cannot be made", "--out", "/nonexistent/x.txt")
}

// TestSimScene plays scenes of files: one that holds, one that does not, and one that is none.
func TestSimScene(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.scene")
	for text, want := range map[string]string{
		"boards 3\npi3 kill\nwithin 130ms: pi2 leads":                  "",
		"boards 3\npi3 kill\nwithin 130ms: pi1 leads":                  ":3: within 130ms: pi1 leads: ",
		"boards 3\npi3 jump":                                           ":2: pi3 jump: a scene has no such line",
		"boards 3\npi9 kill":                                           ":2: pi9 kill: ",
		"boards 3\nwait soon":                                          `:2: wait soon: "soon" is no time`,
		"boards 4\nsplit pi1,pi2 / pi3,pi4\nwait 1s":                   "two boards have held the address",
		"boards 3 algorithm=\"bully\"\npi3 kill\nwithin 3s: pi2 leads": "",
	} {
		assert.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		o := executed(t, "sim", "run", "--scene", file)
		if (o.status == 0) != (want == "") || !strings.Contains(o.stderr, want) {
			t.Errorf("%s\n%v", text, o)
		}
	}
	assert.NoError(t, os.WriteFile(file, []byte("boards 3"), 0o600))
	if o := executed(t, "sim", "run", "--scene", file, "--kill", "3@2s"); o.status == 0 || !strings.Contains(o.stderr, "--scene: the faults are in the scene") {
		t.Errorf("%v", o)
	}
}
