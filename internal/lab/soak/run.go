package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// clientEvery is how often the client asks.
	clientEvery = 2 * time.Millisecond
	// lastLines is how many lines of each board are shown of a trial that a judge did not accept.
	lastLines = 30
)

// session is one soak.
type session struct {
	stage   *stage
	strict  bool
	places  []*place
	asker   *observe.Asker
	machine *netns.Machine
	began   time.Time
	table   table
	// breaches are those of the rules of docs/spec that were found, see rules.go.
	breaches map[string]bool
	out      io.Writer // a line for each trial
}

// open starts the group and all who look on.
func open(p cluster.Program, strict bool, out io.Writer) (s *session, err error) {
	s = &session{strict: strict, began: time.Now(), machine: netns.WatchMachine(), breaches: map[string]bool{}, out: out}
	if s.stage, err = newStage(p, strict); err != nil {
		s.machine.Close()
		return nil, err
	}
	if err = s.look(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// look starts those who look on.
func (s *session) look() (err error) {
	if s.asker, err = s.stage.LAN.Ask(cluster.Address, clientEvery); err != nil {
		return err
	}
	if s.strict {
		p := &place{}
		s.places = []*place{p}
		for _, b := range s.stage.boards {
			if err := p.atPort(b, s.began); err != nil {
				return err
			}
		}
		return nil
	}
	for n, h := range s.stage.probers {
		p := &place{}
		s.places = append(s.places, p)
		if err := p.atMachine(n, h, s.stage.boards, s.began); err != nil {
			return err
		}
	}
	return nil
}

// close ends all of it.
func (s *session) close() error {
	s.machine.Close()
	for _, p := range s.places {
		p.close()
	}
	if s.asker != nil {
		s.asker.Close()
	}
	return s.stage.close()
}

// run makes trials until the time is over. The first error is one of the laboratory; what the
// judges say is in the table.
func (s *session) run(ctx context.Context, c *chooser, until time.Time) error {
	if _, err := s.settle(); err != nil {
		return err
	}
	for time.Now().Before(until) && ctx.Err() == nil {
		t := c.next()
		v, err := s.try(ctx, t)
		if err != nil {
			return err
		}
		s.table.add(v)
		s.say(v)
		if v.lost {
			return fmt.Errorf("the group did not come together again within %v after trial %d", cluster.Timeout, t.number)
		}
	}
	return nil
}

// settle waits until all boards follow one leader, and returns its number.
func (s *session) settle() (leader int, err error) {
	agreed, err := s.stage.AwaitAgreed(s.stage.boards)
	if err != nil {
		return 0, err
	}
	return agreed.Number, nil
}

// try does what a trial says, and judges what became of it.
func (s *session) try(ctx context.Context, t trial) (v verdict, err error) {
	leader, err := s.settle()
	if err != nil {
		return v, err
	}
	v = verdict{trial: t}
	for _, f := range t.faults {
		v.boards = append(v.boards, f.hits(s.stage, leader))
		v.onLeader = append(v.onLeader, f.all || v.boards[len(v.boards)-1] == leader)
	}
	for _, p := range s.places {
		p.take()
	}
	v.began = time.Now()
	for _, step := range t.steps() {
		select {
		case <-time.After(time.Until(v.began.Add(step.at))):
		case <-ctx.Done(): // what was begun is ended, but at once
		}
		if err := step.do(s.stage, v.boards[step.fault]); err != nil {
			return v, fmt.Errorf("trial %d (%s): %w", t.number, t, err)
		}
	}
	v.lasted = time.Since(v.began)
	if err := s.stage.restore(); err != nil {
		return v, err
	}
	if _, err := s.settle(); err != nil {
		v.lost, v.problems = true, append(v.problems, err.Error())
	}
	v.settled = time.Since(v.began) - v.lasted
	select {
	case <-time.After(t.gap):
	case <-ctx.Done():
	}
	s.judge(&v)
	return v, nil
}

// hits returns the number of the board that a fault hits.
func (f fault) hits(s *stage, leader int) int {
	if f.leader {
		return leader
	}
	return s.boards[f.board%len(s.boards)].Number
}

// judge asks all judges.
func (s *session) judge(v *verdict) {
	timeline := s.stage.Holders.Since(v.began)
	v.moves = timeline.Moves()
	client := s.asker.Report(v.began)
	v.outage = max(0, client.Outage.Duration()-client.Outage.Paused)
	v.late = s.machine.Late(v.began)
	for _, p := range s.places {
		if o := longestOverlap(p.take()); o.duration() > v.two.duration() {
			v.two = o
		}
	}
	if s.stage.Holders.Lost() > 0 {
		v.problems = append(v.problems, cluster.ErrLost.Error())
	}
	if s.strict {
		v.judgeStrict()
	} else {
		v.judgeDefault()
	}
	s.checkRules(v)
}

// say writes a line about a trial, and, if a judge did not accept it, what is known of it.
func (s *session) say(v verdict) {
	fmt.Fprintf(s.out, "%8s  %s\n", v.began.Sub(s.began).Round(time.Second), v)
	if v.inconclusive != "" {
		fmt.Fprintf(s.out, "          INCONCLUSIVE: %s\n", v.inconclusive)
	}
	if len(v.problems) == 0 {
		return
	}
	for _, p := range v.problems {
		fmt.Fprintf(s.out, "          NOT ACCEPTED: %s\n", p)
	}
	for _, b := range s.stage.boards {
		fmt.Fprintf(s.out, "          %s (the trial began at %.1f ms):\n", b, float64(v.began.Sub(s.began))/float64(time.Millisecond))
		for line := range strings.Lines(b.Log.Last(lastLines)) {
			fmt.Fprintf(s.out, "            %s", line)
		}
		fmt.Fprintln(s.out)
	}
}

// String says which faults a trial has.
func (t trial) String() string {
	var names []string
	for _, f := range t.faults {
		names = append(names, f.key)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}
