package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/simpage"
)

// askSimPage asks the page of the simulator for JSON.
func askSimPage(t *testing.T, target string, answer any) {
	t.Helper()
	s, err := simpage.New(func(err error) { t.Error(err) })
	assert.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %v: %.300s", target, w.Code, err, w.Body)
	}
}

// TestSimPageShowsWhatTheCommandCounts runs, for each algorithm and each kind of failure, the
// command line that the page prints. Its report must be the one that the page shows.
func TestSimPageShowsWhatTheCommandCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("plays all algorithms with all failures, seconds")
	}
	var choices struct {
		Algorithms, Failures []struct{ Name string }
	}
	askSimPage(t, "/v1/sim/choices", &choices)
	if len(choices.Algorithms) < 8 || len(choices.Failures) < 6 {
		t.Fatalf("the page offers %v", choices)
	}
	for i, algorithm := range choices.Algorithms {
		for j, failure := range choices.Failures {
			q := url.Values{"algorithm": {algorithm.Name}, "failure": {failure.Name}, "seed": {fmt.Sprint(i*10 + j)}}
			if i%2 == 1 {
				q.Set("loss_percent", "5")
			}
			if strings.HasPrefix(failure.Name, "crash") {
				q.Set("boards", "7")
				q.Set("notice", map[bool]string{true: "7", false: "1"}[algorithm.Name == "minid"])
			}
			var shown struct {
				Command string
				Report  any
			}
			askSimPage(t, "/v1/sim/run?"+q.Encode(), &shown)
			o := executed(t, append(strings.Fields(strings.TrimPrefix(shown.Command, "topdog ")), "--json")...)
			var counted any
			if err := json.Unmarshal([]byte(o.stdout), &counted); err != nil || o.status != 0 {
				t.Fatalf("%s: %v, %v", shown.Command, err, o)
			}
			assert.Equal(t, counted, shown.Report, "the page shows what %s counts", shown.Command)
		}
	}
}

// TestSimPage serves the page as a person has it served, in both ways to write the address.
func TestSimPage(t *testing.T) {
	for _, args := range [][]string{{"--page"}, {"--page=127.0.0.1:0"}, {"--page", "127.0.0.1:0"}} {
		ctx, cancel := context.WithCancel(t.Context())
		read, write, err := os.Pipe()
		assert.NoError(t, err)
		status := make(chan int, 1)
		go func() {
			status <- execute(ctx, append([]string{"sim"}, args...), write, write)
			write.Close()
		}()
		var at string
		if _, err := fmt.Fscanf(read, "The simulator is at\n  %s\n", &at); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		client := http.Client{Timeout: 20 * time.Second}
		answer, err := client.Get(at + "v1/sim/run")
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"steps":[{`) {
			t.Errorf("%v: %v, %v: %.200s", args, answer.Status, err, body)
		}
		client.CloseIdleConnections()
		cancel()
		if got := <-status; got != 0 {
			t.Errorf("%v: exit status %d", args, got)
		}
		if rest, err := io.ReadAll(read); err != nil || !strings.Contains(string(rest), "Ctrl-C") {
			t.Errorf("%v: %v, %s", args, err, rest)
		}
		read.Close()
	}
}

func TestSimPageUsage(t *testing.T) {
	for args, want := range map[string][]string{
		"--page 8080":           {"--page", `"8080"`, ":8080"},
		"--page=:http":          {"--page", `":http"`, "0 to 65535"},
		"--page=:65536":         {"--page", "0 to 65535"},
		"--page=pi9.example:80": {"--page", "nothing for all of them"},
		"--page :0 more":        {`":0"`, "neither a command nor the value of a flag"},
		"page":                  {`"page"`, "neither a command nor the value of a flag"},
	} {
		o := executed(t, append([]string{"sim"}, strings.Fields(args)...)...)
		o.want(t, exitUsage, args, want...)
		assert.Is(t, 1, strings.Count(o.stderr, "(see: topdog sim --help)"), "%s: how often it refers to the help", args)
	}
}
