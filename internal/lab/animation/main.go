package animation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"topdog/election/literature"
	"topdog/internal/lab/demo"
)

// The files, in dir.
const (
	dir           = "docs/readme"
	recordingFile = "recording.json"
	lightFile     = "takeover-light.svg"
	darkFile      = "takeover-dark.svg"
)

// pausedMost is how long the machine may have kept the client from asking at any time of the
// recording. One that does so for longer is busy, and the numbers in the picture would be its own.
const pausedMost = 5 * time.Millisecond

// runs is how many are recorded. The middle one is drawn, so that nobody picks a fast one: an
// outage depends on when the act comes between two heartbeats, which is left to chance.
const runs = 5

// Main draws the picture, and records before if it is told to. It ends the program if that fails.
func Main() {
	machine := flag.String("record", "",
		"record runs in network namespaces, as root, and draw the middle one; `MACHINE` says in words what they run on")
	flag.Parse()
	if err := run(*machine); err != nil {
		fmt.Fprintln(os.Stderr, "animation:", err)
		os.Exit(1)
	}
}

func run(machine string) error {
	if machine != "" {
		if err := record(machine); err != nil {
			return err
		}
	}
	files, err := draw(dir)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return err
}

// record records some runs, and keeps the one whose outages are in the middle of all.
func record(machine string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	heir, _ := literature.AlgorithmNamed(literature.Algorithms()[0])
	var all []demo.Recording
	for tries := 0; len(all) < runs; tries++ {
		r, err := demo.Record(ctx, demo.Options{
			Boards: demo.DefaultBoards, Heartbeat: demo.DefaultHeartbeat, Algorithm: heir, Namespaces: true,
		})
		if err != nil {
			return err
		}
		switch err := disturbed(&r); {
		case err == nil:
			all = append(all, r)
		case tries > 3*runs:
			return fmt.Errorf("only %d of %d runs were undisturbed: %w", len(all), tries, err)
		}
	}
	slices.SortFunc(all, func(a, b demo.Recording) int { return cmp.Compare(silence(&a), silence(&b)) })
	r := all[runs/2]
	for i := range all {
		r.Runs = append(r.Runs, silence(&all[i]))
	}
	r.Command, r.MachineText = fmt.Sprintf("go run ./scripts/animation -record %q", machine), machine
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordingFile), append(text, '\n'), 0o644)
}

// silence is how long nobody answered because of the acts, in all.
func silence(r *demo.Recording) (sum time.Duration) {
	for _, g := range newTimeline(r).outages {
		sum += g.To - g.From
	}
	return sum
}

// disturbed says whether this machine was busy during a recording.
func disturbed(r *demo.Recording) error {
	if r.Paused > pausedMost {
		return fmt.Errorf("this machine kept the client from asking for %v, more than %v: record again when it is quiet",
			r.Paused, pausedMost)
	}
	return nil
}

// read reads the recording of a directory.
func read(dir string) (*demo.Recording, error) {
	path := filepath.Join(dir, recordingFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r demo.Recording
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &r, nil
}

// draw draws the recording of a directory. It returns the names of the pictures, and what is in them.
func draw(dir string) (map[string][]byte, error) {
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{lightFile: encode(r, false), darkFile: encode(r, true)}, nil
}
