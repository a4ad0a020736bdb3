package sim_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// TestTranscripts plays the scripts in testdata and compares everything that the
// boards do and say. To write them anew: go test ./internal/lab/sim -update; then
// read the difference.
//
// The commands; those above the line can also stand in the lines below a lan:
//
//	lan [latency=200us] [jitter=1ms] [loss=0.1] [seed=1] [second=3ms]    a new, empty LAN; the latency of its second path
//	board 1 2 3 [label=x] [priority=100] [preempt] [interval=100ms] [algorithm=heir]
//	    [detector=fixed] [fanout=unicast] [measure=age] [members=(1,2,3)] [voters=(1,2,3)] [second]
//	settle 1 2 3        starts them, lets them elect a leader and learn how far away it is,
//	                    and says only who leads. It ends at a full second, and sets the mark
//	---
//	start 1 2 3 · crash 3 · pull 3 · plug 3 · mute 3 · unmute 3 · freeze 3 · thaw 3 · stop 3 · resign 3
//	restart 3           crash and start
//	deaf 3              its port drops what is for board 3; unheard 3 drops what it sends; unmute 3 ends both
//	no-multicast 3      board 3 gets none; multicast 3 ends it
//	partition 1,2 3,4   cuts the LAN into these pieces, and the boards that are not named; heal ends it
//	deafen 2 3          board 2 does not hear board 3 any more; undeafen 2 3 ends it
//	cut-second 3        the second path of board 3 passes nothing; heal-second ends it for all
//	lose 3 RESIGN 1 [to=2]   the next message of that type which board 3 sends is lost
//	priority 2 0        changes the priority of board 2
//	grade 2 failing     changes the grade of board 2
//	pause 2 1m          somebody pauses the group on board 2; unpause 2 ends it
//	foreign on/off      a foreign machine has the address
//	run 500ms [all] [brief]  lets time pass and prints what happened; all shows HEARTBEAT, HELLO,
//	                    QUERY and RIVAL to all too, brief neither ELECTION nor ANSWER nor OK nor ACK
//	                    nor SUPPORT nor PAUSE
//	mark                from where check looks at the address
//	check               who follows whom, who holds the address, how well the address was kept
//
// A board is named by its label, which is its id unless another one is given.
func TestTranscripts(t *testing.T) {
	if *golden.Update {
		assert.NoError(t, flag.Set("rewrite", "true")) // of datadriven
	}
	// Beside the scripts are the schedules that a property once failed with, which must stay as they are.
	scripts, err := filepath.Glob("testdata/[0-9]*")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p := &player{t: t}
			datadriven.RunTest(t, path, p.play)
		})
	}
}

type player struct {
	t     *testing.T
	sim   *sim.Sim
	lines []string
	hide  map[wire.Type]bool
	mark  election.Instant
}

func (p *player) play(t *testing.T, d *datadriven.TestData) string {
	p.lines = nil
	p.hide = map[wire.Type]bool{wire.TypeHeartbeat: true, wire.TypeHello: true, wire.TypeQuery: true}
	if d.HasArg("all") {
		p.hide = nil
	}
	if d.HasArg("brief") {
		p.hide[wire.TypeElection], p.hide[wire.TypeAnswer] = true, true
		p.hide[wire.TypeOK], p.hide[wire.TypeAck] = true, true
		p.hide[wire.TypeSupport], p.hide[wire.TypePause] = true, true
	}
	p.command(d)
	for line := range strings.Lines(d.Input) {
		below := *d
		var err error
		if below.Cmd, below.CmdArgs, err = datadriven.ParseLine(line); err != nil {
			d.Fatalf(t, "%v", err)
		}
		p.command(&below)
	}
	if len(p.lines) == 0 {
		return ""
	}
	return strings.Join(p.lines, "\n") + "\n"
}

// orders are what is done to each of the boards that are named.
var orders = map[string]func(*sim.Sim, *sim.Board){
	"start": of((*sim.Board).Start), "crash": of((*sim.Board).Crash), "stop": of((*sim.Board).Stop),
	"pull": of((*sim.Board).Pull), "plug": of((*sim.Board).Plug), "mute": mute, "unmute": unmute,
	"deaf": deaf, "unheard": unheard,
	"freeze": of((*sim.Board).Freeze), "thaw": of((*sim.Board).Thaw),
	"restart":      of(func(b *sim.Board) { b.Crash(); b.Start() }),
	"no-multicast": noMulticast, "multicast": multicast,
}

// of is what needs no LAN to be done.
func of(do func(*sim.Board)) func(*sim.Sim, *sim.Board) {
	return func(_ *sim.Sim, b *sim.Board) { do(b) }
}

func (p *player) command(d *datadriven.TestData) {
	arg := func(i int) string {
		if i >= len(d.CmdArgs) {
			d.Fatalf(p.t, "%s needs more arguments", d.Cmd)
		}
		return d.CmdArgs[i].Key
	}
	switch d.Cmd {
	case "lan":
		p.lan(d)
	case "board":
		p.boards(d)
	case "settle":
		p.settle(d)
	case "run":
		p.sim.Run(p.duration(arg(0)))
	case "check":
		p.check()
	case "mark":
		p.mark = p.sim.Now()
	case "foreign":
		p.sim.Foreign = arg(0) == "on"
	case "deafen":
		deafen(p.sim, p.named(arg(0)), p.named(arg(1)).Config.ID)
	case "undeafen":
		undeafen(p.sim, p.named(arg(0)), p.named(arg(1)).Config.ID)
	case "lose":
		p.lose(d, arg(0), arg(1), p.number(arg(2)))
	case "priority":
		p.named(arg(0)).Reprioritise(uint8(p.number(arg(1))), d.HasArg("preempt"))
	case "pause":
		p.complain(p.named(arg(0)).Pause(p.duration(arg(1))))
	case "unpause":
		p.complain(p.named(arg(0)).Unpause())
	case "resign":
		p.complain(p.named(arg(0)).Resign())
	case "grade":
		p.named(arg(0)).SetGrade(p.grade(arg(1)))
	case "partition":
		new(parts).split(p.sim, p.groups(d)...)
	case "cut-second":
		var of []*sim.Board
		for _, arg := range d.CmdArgs {
			of = append(of, p.named(arg.Key))
		}
		p.sim.CutSecondPath(of...)
	case "heal-second":
		p.sim.Second.Cut = nil
	case "heal":
		between := partsOf(p.sim)
		between.join(p.sim)
	default:
		do := known(p, d, "command", d.Cmd, func(name string) (func(*sim.Sim, *sim.Board), bool) { do, ok := orders[name]; return do, ok })
		for _, arg := range d.CmdArgs {
			if arg.Key != "all" {
				do(p.sim, p.named(arg.Key))
			}
		}
	}
}

// play does what a text says, with the commands of the transcripts: one after the other, with a semicolon between.
func play(t *testing.T, lan *sim.Sim, text string) {
	t.Helper()
	p := &player{t: t, sim: lan}
	for step := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		command, args, err := datadriven.ParseLine(step)
		assert.NoError(t, err)
		p.command(&datadriven.TestData{Cmd: command, CmdArgs: args})
	}
	assert.Equal(t, []string(nil), p.lines, "errors")
}

// complain prints an error, if there is one.
func (p *player) complain(err error) {
	if err != nil {
		p.say("error: %v", err)
	}
}

func (p *player) lan(d *datadriven.TestData) {
	w, second, least, jitter, seed := quick, quick, latency, time.Duration(0), uint64(1)
	p.mark = 0
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "latency":
			least = p.duration(arg.Vals[0])
		case "jitter":
			jitter = p.duration(arg.Vals[0])
		case "loss":
			w.Loss, _ = strconv.ParseFloat(arg.Vals[0], 64)
		case "seed":
			seed = uint64(p.number(arg.Vals[0]))
		case "second":
			second.Delay = sim.Constant(p.duration(arg.Vals[0]))
		}
	}
	w.Delay = sim.Uniform(least, least+jitter)
	p.sim = sim.New(seed, w)
	p.sim.Second.Wire = second
	p.sim.Trace = func(e sim.Event) {
		hidden := e.Message != nil && (p.hide[e.Message.Type] || p.hide != nil && e.Counted == sim.KindLook)
		if !hidden || e.Message.Reply && e.To == wire.Nobody {
			p.lines = append(p.lines, e.Text())
		}
	}
}

// known looks a value up by its name.
func known[T any](p *player, d *datadriven.TestData, what, name string, find func(string) (T, bool)) T {
	value, ok := find(name)
	if !ok {
		d.Fatalf(p.t, "%s: there is no %q", what, name)
	}
	return value
}

func (p *player) boards(d *datadriven.TestData) {
	cfg := config(0, wire.AlgorithmHeir)
	var ids []wire.ID
	label := ""
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "label":
			label = arg.Vals[0]
		case "priority":
			cfg.Priority = uint8(p.number(arg.Vals[0]))
		case "preempt":
			cfg.Preempt = true
		case "second":
			cfg.SecondPath = true
		case "interval":
			cfg.Interval = p.duration(arg.Vals[0])
		case "detector":
			cfg.Detector = known(p, d, arg.Key, arg.Vals[0], silence.DetectorNamed)
		case "fanout":
			cfg.Fanout = known(p, d, arg.Key, arg.Vals[0], election.FanoutNamed)
		case "measure":
			cfg.ScoreSource = known(p, d, arg.Key, arg.Vals[0], election.ScoreSourceNamed)
		case "members":
			cfg.Members = p.ids(arg.Vals)
		case "voters":
			cfg.Voters = p.ids(arg.Vals)
		case "algorithm":
			cfg.Algorithm = known(p, d, arg.Key, arg.Vals[0], literature.AlgorithmNamed)
		default:
			ids = append(ids, wire.ID(p.number(arg.Key)))
		}
	}
	for _, id := range ids {
		cfg.ID, cfg.Name = id, fmt.Sprintf("pi%d", id)
		b := p.sim.Add(cfg)
		if label != "" {
			b.Label = label
		}
	}
}

func (p *player) ids(words []string) (ids []wire.ID) {
	for _, word := range words {
		ids = append(ids, wire.ID(p.number(word)))
	}
	return ids
}

// groups reads the pieces of a LAN.
func (p *player) groups(d *datadriven.TestData) (groups [][]wire.ID) {
	for _, arg := range d.CmdArgs {
		groups = append(groups, p.ids(strings.Split(arg.Key, ",")))
	}
	return groups
}

// settle starts boards, and lets them find a leader and do all that boards do in
// their first second. How that looks is shown in 01-cold-start.
func (p *player) settle(d *datadriven.TestData) {
	trace := p.sim.Trace
	p.sim.Trace = nil
	for _, arg := range d.CmdArgs {
		p.named(arg.Key).Start()
	}
	p.sim.Run((p.sim.Now() + 2*time.Second).Truncate(time.Second) - p.sim.Now())
	for range 10 {
		if len(p.sim.Summarise(p.sim.Now()).Holders) > 0 {
			break
		}
		p.sim.Run(time.Second) // the deadline of the algorithm score is 2 s
	}
	p.sim.Trace = trace
	p.mark = p.sim.Now()
	p.say("%v: leader %v", p.sim.Now(), labels(p.sim.Summarise(0).Holders))
}

func (p *player) lose(d *datadriven.TestData, from, kind string, n int) {
	var to *sim.Board
	if d.HasArg("to") {
		var name string
		d.ScanArgs(p.t, "to", &name)
		to = p.named(name)
	}
	for k := wire.TypeHeartbeat; k <= wire.TypePause; k++ {
		if k.String() == kind {
			lose(p.sim, p.named(from), k, n, to)
			return
		}
	}
	d.Fatalf(p.t, "no such message: %s", kind)
}

func (p *player) say(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

func (p *player) named(label string) *sim.Board {
	b := p.sim.Board(label)
	if b == nil {
		p.t.Fatalf("no such board: %s", label)
	}
	return b
}

func (p *player) number(s string) int {
	n, err := strconv.Atoi(s)
	assert.NoError(p.t, err)
	return n
}

func (p *player) grade(s string) wire.Grade {
	for g := wire.GradePassing; g <= wire.MaxGrade; g++ {
		if g.String() == s {
			return g
		}
	}
	p.t.Fatalf("there is no grade %s", s)
	return 0
}

func (p *player) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	assert.NoError(p.t, err)
	return d
}

// check describes the state of the LAN.
func (p *player) check() {
	for _, b := range p.sim.Boards() {
		s, ok := b.Status()
		if !ok {
			p.say("board %s: off", b.Label)
			continue
		}
		line := fmt.Sprintf("board %s: %v, leader %v, heir %v, term %d", b.Label, s.Role, s.Leader, s.Heir, s.Term)
		if s.Trust != nil {
			line += fmt.Sprintf(", trusts %v", s.Trust)
		}
		p.say("%s", line)
	}
	sum := p.sim.Summarise(p.mark)
	p.say("address at %v; since the mark: moves %d, longest vacancy %v, doubled %v", labels(sum.Holders),
		sum.Moves, sum.LongestVacancy.Round(100*time.Microsecond), sum.Doubled.Round(100*time.Microsecond))
}
