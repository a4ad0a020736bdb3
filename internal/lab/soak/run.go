package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
)

const (
	// numBoards is how many run topdog, in either mode, and numPlaces how many machines ask the boards.
	numBoards, numPlaces = 3, 2
	// clientEvery is how often the client asks.
	clientEvery = 2 * time.Millisecond
	// lastLines is how many lines of each board are shown of a trial that a judge did not accept.
	lastLines = 30
	// exitTimeout is how long the daemons get to end after SIGTERM.
	exitTimeout = 4 * time.Second
)

// session is one soak: a group on which trials are played, and all who look on.
type session struct {
	cluster.Stage
	ctx     context.Context
	strict  bool
	groups  bool // each board is in a second group too
	second  bool // each board has a second path to the others
	places  []*place
	asker6  *observe.Asker // at the IPv6 address
	machine *netns.Machine
	began   time.Time
	table   table
	// breaches are those of the rules of docs/spec that were found, see rules.go.
	breaches map[string]bool
	out      io.Writer // a line for each trial

	v *verdict // on the trial that is played
}

// open builds the group, and starts all who look on.
func (o options) open(ctx context.Context, p cluster.Program, out io.Writer) (s *session, err error) {
	s = &session{ctx: ctx, strict: o.strict, groups: o.groups, second: o.second, began: time.Now(), machine: netns.WatchMachine(), breaches: map[string]bool{}, out: out}
	s.Stage, err = cluster.NewStage(cluster.NewWithIPv6, p, numBoards, numPlaces, nil)
	if err == nil && o.strict {
		err = s.vote()
	}
	for _, b := range s.Boards {
		if err == nil && o.groups {
			err = b.JoinSecond()
		}
		if err == nil && o.second {
			err = b.Set(cluster.SecondPath)
		}
	}
	if err == nil && o.second {
		err = s.LAN.AddSecondPath(false)
	}
	if err != nil {
		s.machine.Close()
		return nil, err
	}
	if err = s.look(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// vote makes the boards the voters of the strict mode. The first scene starts them.
func (s *session) vote() error {
	var voters []string
	for _, b := range s.Boards {
		voters = append(voters, cluster.Quote(b.Addr.Addr().String()))
	}
	for _, b := range s.Boards {
		if err := b.Set(cluster.Settings{"algorithm": cluster.Quote("strict"), "voters": "[" + strings.Join(voters, ", ") + "]"}); err != nil {
			return err
		}
	}
	return nil
}

// addresses are those at which each place asks: those of the first group, and of the second one if there is one.
func (s *session) addresses() []asked {
	if s.groups {
		return askers
	}
	return askers[:2]
}

// look starts those who look on.
func (s *session) look() (err error) {
	if s.Asker, err = s.LAN.Ask(cluster.Address, clientEvery); err == nil {
		s.asker6, err = s.LAN.Ask(cluster.Address6, clientEvery)
	}
	if err != nil {
		return err
	}
	if s.strict {
		p := &place{}
		s.places = []*place{p}
		for _, b := range s.Boards {
			if err := p.atPort(b, s.addresses()); err != nil {
				return err
			}
		}
		return nil
	}
	for n := range numPlaces {
		p := &place{}
		s.places = append(s.places, p)
		if err := p.atMachine(n, s.LAN.Board(numBoards+1+n), s.Boards, s.addresses()); err != nil {
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
	for _, a := range []*observe.Asker{s.Asker, s.asker6} {
		if a != nil {
			a.Close()
		}
	}
	s.Stop(exitTimeout)
	return s.Close()
}

// run makes trials until the time is over. The first error is one of the laboratory; what the
// judges say is in the table.
func (s *session) run(c *chooser, until time.Time) error {
	for time.Now().Before(until) && s.ctx.Err() == nil {
		t, err := c.next()
		if err != nil {
			return err
		}
		v, err := s.try(t)
		if err != nil {
			return fmt.Errorf("trial %d (%s): %w", t.number, t, err)
		}
		s.table.add(v)
		s.say(v)
		if v.lost {
			return fmt.Errorf("the group did not come together again within %v after trial %d", cluster.Timeout, t.number)
		}
	}
	return nil
}

// try plays a trial, and judges what became of it.
func (s *session) try(t trial) (verdict, error) {
	played, err := scene.Parse(fmt.Sprintf("trial %d", t.number), t.text())
	if err != nil {
		return verdict{}, err
	}
	s.v = &verdict{trial: t}
	err = played.Play(s, 0)
	if s.v.lasted == 0 {
		return *s.v, errors.Join(err, errors.New("nothing was measured"))
	}
	if err != nil {
		s.v.lost, s.v.problems = true, append(s.v.problems, err.Error())
	}
	s.v.settled = time.Since(s.v.began) - s.v.lasted
	s.Pass(t.gap)
	s.judge(s.v)
	return *s.v, s.awaitSecondPath()
}

// Answers reports whether a board answers both clients. In a LAN that has just been made, the one at the IPv6 address is answered
// a second or two later: the hosts first ask whether others have their own addresses (RFC 4862, section 5.4).
func (s *session) Answers(n int) bool {
	return s.Stage.Answers(n) && cluster.Answers(s.asker6, n)
}

// Measure notes which boards a trial hits, and begins to look.
func (s *session) Measure(string, string) error {
	if s.v == nil {
		return nil // a scene of a file
	}
	for _, f := range s.v.faults {
		on := f.it
		if leader := scene.Name(s.Holders()[0]); on == leader {
			on = "leader"
		}
		s.v.onLeader = append(s.v.onLeader, f.all || on == "leader")
	}
	for _, p := range s.places {
		p.take()
	}
	s.v.began = time.Now()
	return nil
}

// Measured notes for how long the faults lasted.
func (s *session) Measured() error {
	if s.v == nil {
		return nil
	}
	s.v.lasted = time.Since(s.v.began)
	return nil
}

// Pass waits. What a fault has begun is ended also if the soak is interrupted, but at once.
func (s *session) Pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// judge asks all judges.
func (s *session) judge(v *verdict) {
	v.moves = max(s.Cluster.Holders.Since(v.began).Moves(), s.Holders6.Since(v.began).Moves())
	for _, a := range []*observe.Asker{s.Asker, s.asker6} {
		client := a.Report(v.began)
		v.outage = max(v.outage, client.Outage.Duration()-client.Outage.Paused)
	}
	v.late = s.machine.Late(v.began)
	for _, taken := range s.taken() {
		for address, spans := range taken {
			if o := longestOverlap(spans); o.duration() > v.two.duration() {
				v.two, v.at = o, address
			}
		}
	}
	if s.Lost() > 0 {
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
	fmt.Fprintf(s.out, "          as a scene:\n%s", indented(v.text()))
	for _, b := range s.Boards {
		fmt.Fprintf(s.out, "          %s (the trial began at %.1f ms):\n%s\n", b, float64(v.began.Sub(s.began))/float64(time.Millisecond),
			indented(b.Log.Last(lastLines)))
	}
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("            " + line)
	}
	return out.String()
}
