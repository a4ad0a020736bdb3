package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/golden"
	"topdog/internal/lab/judge"
)

func TestMain(m *testing.M) {
	PlayUser()
	judge.Main(m)
}

// The program attacks real daemons as a laptop and as a user, and what it measures can be shown again. The address stays where it
// is, whatever is done. How long anybody waits is judged by the short form of scripts/attack; this is the long one, which judges nothing.
func TestProgram(t *testing.T) {
	// To build it inside judge.Run would keep a slot that another test could use meanwhile.
	program := filepath.Join(t.TempDir(), "topdog")
	if os.Getuid() == 0 && !testing.Short() {
		assert.NoError(t, cluster.Build(t.Context(), program))
	}
	judge.Run(t, func(t *judge.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		file := filepath.Join(t.TempDir(), "attack.json")
		var out, again bytes.Buffer
		args := "--long --systems before --before " + program + " --places shared --attacks bad-tags,status,bind,kill-bad-tags --for 300ms --runs 1 --rate 2000 --json " + file
		if err := run(ctx, strings.Fields(args), &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		assert.NoError(t, run(ctx, []string{"--from", file}, &again))
		assert.Equal(t, out.String(), again.String(), "what was measured, and what is shown of it")
		text, err := os.ReadFile(file)
		assert.NoError(t, err)
		var r report
		assert.NoError(t, json.Unmarshal(text, &r))
		if len(r.Results) != len(r.Attacks) {
			t.Fatalf("%d attacks, %d results", len(r.Attacks), len(r.Results))
		}
		for _, x := range r.Results {
			switch {
			case x.Note != "":
				t.Errorf("%s: %s", x.Attack, x.Note)
			case x.moved() && (x.Attack == "bad-tags" || x.Attack == "status"):
				t.Errorf("%s moved the address, or two boards had it: %v", x.Attack, x.Figures)
			case x.Attack == "kill-bad-tags" && len(x.Runs) != 1, x.Attack == "bind" && len(x.Runs) != 1:
				t.Errorf("%s took %v", x.Attack, x.Runs)
			case x.Attack != "bind" && x.Figures["times/s"] == 0:
				t.Errorf("%s: nothing was done", x.Attack)
			}
		}
	})
}

// What was measured in several parts becomes one report; the later figure of a row counts.
func TestAdd(t *testing.T) {
	first := &report{Systems: []system{{Name: "topdog"}}, Places: places()[:1], Attacks: []attack{{Key: "a"}},
		Results: []Result{{System: "topdog", Place: "apart", Attack: "a", Note: "1"}}}
	second := &report{Systems: []system{{Name: "topdog"}, {Name: "ucarp"}}, Places: places()[:2], Attacks: []attack{{Key: "b"}, {Key: "a"}},
		Results: []Result{{System: "topdog", Place: "apart", Attack: "a", Note: "2"}, {System: "ucarp", Place: "shared", Attack: "b"}}}
	var all report
	all.add(first)
	all.add(second)
	var got []string
	for _, x := range all.Results {
		got = append(got, x.System+" "+x.Place+" "+x.Attack)
	}
	if diff := cmp.Diff([]string{"topdog apart a", "ucarp shared b"}, got); diff != "" || all.Results[0].Note != "2" {
		t.Errorf("%s\n%+v", diff, all.Results)
	}
	if len(all.Systems) != 2 || len(all.Places) != 2 || len(all.Attacks) != 2 {
		t.Errorf("%+v", all)
	}
}

func TestTable(t *testing.T) {
	r := &report{Processors: 2, Places: places()[:1], Attacks: []attack{{Key: "a", Title: "a flood"}, {Key: "b", Title: "a crash"}, {Key: "c", Title: "no luck"}},
		Results: []Result{
			{System: "topdog", Place: "apart", Attack: "a", Figures: map[string]float64{"times/s": 20000, "moves": 1, "two-ms": 1.5, "longest-ms": 12,
				"outage-ms": 20, "leader-cpu-%": 20, "follower-cpu-%": 10, "packets/s": 7, "status-median-ms": 9, "status-ms": 80, "status-failed": 1, "late-ms": 5}},
			{System: "topdog", Place: "apart", Attack: "b", Figures: map[string]float64{"times/s": 1, "took-median-ms": 2, "took-ms": 3, "took-most-ms": 3, "runs": 3}, Runs: []float64{1, 2, 3}},
			{System: "topdog", Place: "apart", Attack: "c", Note: "it was not there\nand more"},
		}}
	var out bytes.Buffer
	assert.NoError(t, r.write(&out))
	golden.Compare(t, "testdata/table.txt", out.String())
}

// The tables go into a page between its marks, and two builds stand beside each other.
func TestPage(t *testing.T) {
	r := &report{Places: places()[:1], Attacks: []attack{{Key: "a", Title: "a flood"}, {Key: "b", Title: "a crash"}, {Key: "c", Title: "VRRP"}, {Key: "d", Title: "a clone"}},
		Results: []Result{
			{System: "topdog", Place: "apart", Attack: "a", Figures: map[string]float64{"times/s": 20000, "moves": 0, "two-ms": 0, "leader-cpu-%": 10, "packets/s": 7, "status-ms": 80}},
			{System: "before", Place: "apart", Attack: "a", Figures: map[string]float64{"times/s": 20000, "moves": 3, "two-ms": 1.5, "leader-cpu-%": 20, "packets/s": 7, "status-failed": 2}},
			{System: "topdog", Place: "apart", Attack: "b", Figures: map[string]float64{"took-median-ms": 1, "took-ms": 2, "took-most-ms": 2, "runs": 2}, Runs: []float64{1, 2}},
			{System: "topdog", Place: "apart", Attack: "d", Figures: map[string]float64{"never": 1, "took-median-ms": 5000, "took-ms": 5000, "took-most-ms": 5000, "runs": 1}, Runs: []float64{5000}},
			{System: "keepalived", Place: "apart", Attack: "c", Figures: map[string]float64{"times/s": 10, "moves": 7}},
		}}
	file := filepath.Join(t.TempDir(), "page.md")
	page := "above\n" + pageBegin + "\nold\n" + pageEnd + "\nbelow\n"
	assert.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	assert.NoError(t, r.insert(file))
	text, err := os.ReadFile(file)
	assert.NoError(t, err)
	golden.Compare(t, "testdata/page.md", string(text))
	assert.NoError(t, os.WriteFile(file, []byte("no marks"), 0o600))
	if err := r.insert(file); err == nil {
		t.Error("a page without marks has got tables")
	}
}

// Every scene can be read, and what it floods with and wants is known.
func TestScenes(t *testing.T) {
	for _, a := range attacks() {
		_, err := a.scene(1)
		assert.ErrorIs(t, err, nil, "%s", a)
		for line := range strings.Lines(a.text) {
			words := strings.Fields(line)
			i := slices.Index(words, "flood")
			switch {
			case i >= 0 && kinds[words[i+1]] == nil:
				t.Errorf("%s: there is no flood %q", a, words[i+1])
			case i < 0 && len(words) > 0 && words[0] == "must":
				_, err := Result{}.beyond(words[1:])
				assert.ErrorIs(t, err, nil, "%s: %s", a, line)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // in the error, or the systems, places and attacks
	}{
		"short":        {[]string{"--attacks", "ttl"}, "topdog | shared | ttl | 1.5s 2"},
		"long":         {[]string{"--long", "--attacks", "none,ttl", "--for", "1s"}, "topdog keepalived ucarp | apart shared tenth | none ttl | 1s 20"},
		"before":       {[]string{"--before", "/x", "--attacks", "ttl"}, "topdog before | shared | ttl | 1.5s 2"},
		"before alone": {[]string{"--before", "/x", "--systems", "before", "--attacks", "ttl"}, "before | shared | ttl | 1.5s 2"},
		"no before":    {[]string{"--systems", "before"}, `there is no "before"`},
		"no attack":    {[]string{"--attacks", "x"}, `there is no "x"`},
		"list":         {[]string{"--places", "list"}, "apart,shared,tenth"},
		"an argument":  {[]string{"x"}, `no argument "x"`},
		"negative":     {[]string{"--rate", "-1"}, "must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(c.args)
			if err != nil {
				assert.ErrorContains(t, err, c.want, "")
				return
			}
			var where, which []string
			for _, p := range o.places {
				where = append(where, p.Key)
			}
			for _, a := range o.attacks {
				which = append(which, a.Key)
			}
			got := fmt.Sprintf("%s | %s | %s | %v %d", strings.Join(o.systems, " "), strings.Join(where, " "), strings.Join(which, " "), o.lasts, o.runs)
			assert.Is(t, c.want, got, "")
		})
	}
}

// A user who takes a port has it until the end, and one who is not an ordinary user does nothing.
func TestUsers(t *testing.T) {
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4zero})
	assert.NoError(t, err)
	port := uint16(free.LocalAddr().(*net.UDPAddr).Port)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	free.Close()
	assert.Is(t, 1, bind(ctx, user{Port: port}), "how often the port was taken")
	if err := play(`{"Does":"bind"}`, &bytes.Buffer{}); os.Getuid() == 0 && (err == nil || !strings.Contains(err.Error(), "not to an ordinary one")) {
		t.Errorf("%v", err)
	}
	if err := play(`{`, &bytes.Buffer{}); err == nil {
		t.Error("half a request is none")
	}
}
