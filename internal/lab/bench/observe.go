package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// askInterval is how often the client asks, and slowAskInterval how often it asks a
	// system whose outages are seconds: many of those run at once, and would
	// otherwise keep this machine busy with questions.
	askInterval     = time.Millisecond
	slowAskInterval = 4 * time.Millisecond

	// roundTrips is how often the way to the address is timed before a run.
	roundTrips = 21
)

// observation is what is seen of a group during an event: by a client that asks all the time, by ARP from its place, and
// by the kernels of all boards, which report who has the address.
type observation struct {
	group   *Group
	asker   *observe.Asker
	names   *nameLine       // nil unless the client asks the boards' service
	prober  *observe.Prober // nil unless the event wants it
	heard   *announcements
	trip    time.Duration
	old     net.HardwareAddr // of the leader
	began   time.Time
	halted  []observe.Span // while the switch forwarded nothing
	passed  time.Time      // when the first frame came for which the scene listened
	now     *measuring     // nil between two measures
	open    []*measuring   // those that end with the scene
	samples []sample
	later   []func() // what is added to the samples when the scene is over
}

// measuring is a measure that has begun.
type measuring struct {
	key          string
	began, ended time.Time
	answers      int               // how many there had been
	how          map[string]string // what the scene says about it
	more         map[string]float64
}

func newObservation(g *Group) *observation { return &observation{group: g} }

// observe lets the client ask who answers, or the boards' service, waits until the leader does, and times the way to the
// address.
func (o *observation) observe(ctx context.Context, e *event, leader *board) (err error) {
	lan, every := o.group.LAN, askInterval
	if o.group.sys.slow() || e.is("coarse") {
		every = slowAskInterval
	}
	o.old = slices.Clone(leader.HardwareAddr)
	if o.heard, err = o.group.hearAnnouncements(); err != nil {
		return err
	}
	if e.is("probed") {
		if o.prober, err = o.group.probe(); err != nil {
			return err
		}
	}
	if e.is("served") {
		o.asker, err = lan.AskBy(func(conn *net.UDPConn) observe.Line {
			o.names = newNameLine(conn)
			return o.names
		}, every)
	} else {
		o.asker, err = lan.Ask(vip, every)
	}
	if err != nil {
		return err
	}
	if err := o.awaitAnswer(ctx, o.maxOutage(), func(n int) bool { return n == leader.Number }); err != nil {
		return fmt.Errorf("%s alone has had the address for %v, and does not answer: %w\nThe client's kernel knows:\n%s",
			leader.Name, o.group.sys.stableFor(), err, neighbours(lan.Client()))
	}
	if !e.is("served") {
		o.trip, err = roundTrip(lan.Client())
	}
	return err
}

func (o *observation) close() {
	if o.asker != nil {
		o.asker.Close()
	}
	if o.prober != nil {
		o.prober.Close()
	}
	if o.heard != nil {
		o.heard.close()
	}
}

// maxOutage is how long the client's outage may last.
func (o *observation) maxOutage() time.Duration { return max(8*time.Second, 12*o.group.sys.H) }

func anybody(int) bool { return true }

// awaitAnswer waits for an answer of some board to the client.
func (o *observation) awaitAnswer(ctx context.Context, most time.Duration, of func(board int) bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_, err := o.asker.WaitAnswer(ctx, of)
	return err
}

// Measure begins a measure, and ends the one before.
func (s *stage) Measure(key, _ string) error {
	if err := s.Measured(); err != nil {
		return err
	}
	_, answers := s.asker.Gaps(0)
	s.now = &measuring{key: key, began: time.Now(), answers: answers, how: map[string]string{}}
	return nil
}

// Measured ends the measure.
func (s *stage) Measured() error {
	m := s.now
	if s.now = nil; m == nil {
		return nil
	}
	if m.how["until"] == "end" {
		s.open = append(s.open, m)
		return nil
	}
	return s.record(s.ctx, m)
}

// recordOpen records what ends with the scene.
func (o *observation) recordOpen(ctx context.Context) (err error) {
	for _, m := range o.open {
		err = errors.Join(err, o.record(ctx, m))
	}
	for _, add := range o.later {
		add()
	}
	return err
}

// record adds the figures of a measure. There is always a gap since the last answer, so it waits for one more, if the
// client may get one: then a gap that is still open is an outage for which the bench does not wait any longer.
func (o *observation) record(ctx context.Context, m *measuring) error {
	m.ended = time.Now()
	if !slices.Contains([]string{"whole", "none", "now"}, m.how["outage"]) {
		if err := o.awaitAnswer(ctx, o.maxOutage(), anybody); err != nil && ctx.Err() != nil {
			return err
		}
	}
	if m.how["from"] == "frame" {
		m.began = o.passed
	}
	client, held := o.asker.Report(m.began), o.group.Holders.Since(m.began)
	v := map[string]float64{
		"two-ms": millis(held.Overlap()), "none-ms": millis(held.Vacant()),
		"moves": float64(held.Moves()), "late-ms": millis(client.Pause),
	}
	o.countOutage(m, client, held, v)
	if o.trip > 0 {
		v["trip-ms"] = millis(o.trip)
	}
	others := slices.DeleteFunc(o.heard.since(m.began), func(a announcement) bool { return bytes.Equal(a.from, o.old) })
	v["announcements"] = float64(len(others))
	from := m.began
	switch m.how["holders"] {
	case "from-frame":
		from = o.passed
		v["two-ms"] = millis(o.group.Holders.Since(from).Overlap())
	case "afterwards":
		o.later = append(o.later, func() {
			v["two-ms"] = millis(o.group.Holders.Since(m.ended).Overlap())
			o.countLasting(v)
		})
	}
	o.countLasting(v)
	if o.prober != nil {
		v["two-answer-ms"] = millis(o.prober.Since(from).Overlap())
	}
	for unit, value := range m.more {
		v[unit] = value
	}
	o.samples = append(o.samples, sample{"Failover", labels{"system": o.group.sys.key, "event": m.key}, v})
	return nil
}

// countLasting notes whether there still are two holders: two-ms is then the least that it can be.
func (o *observation) countLasting(v map[string]float64) {
	delete(v, "two-lasts")
	if len(o.group.Holders.Current()) > 1 {
		v["two-lasts"] = 1
	}
}

// countOutage counts the outage in the way that the scene wants: the longest that the client waited for an answer, or
//
//	sum            all of the time without answers
//	unexplained    the sum of what the silences of the switch do not explain
//	first, start   until the first answer; with start, the address moves only after that
//	last           until the first answer and the last change of the holders
//	whole, none    the length of the measure, or nothing: nobody can answer
//	now            the longest until the end of the measure, without waiting for one more answer
func (o *observation) countOutage(m *measuring, client observe.Report, held observe.Timeline, v map[string]float64) {
	outage, open := client.Waited, client.Longest.After == 0 // there was no answer after the gap
	if o.names != nil {
		lost := o.names.silences(m.began)
		outage, open = lost.longest, lost.open
	}
	until := client.First.At.Sub(m.began)
	switch m.how["outage"] {
	case "sum":
		outage = client.Unanswered
	case "unexplained":
		gaps, _ := o.asker.Gaps(m.answers)
		outage = unexplained(gaps, o.halted)
	case "start", "first":
		if outage, open = until, client.First.Board == 0; open {
			outage = time.Since(m.began)
		} else if m.how["outage"] == "start" {
			// That another board begins than led before is no move.
			v["moves"] = float64(o.group.Holders.Since(client.First.At).Moves())
		}
	case "last":
		outage = max(until, lastChange(held), 0)
	case "whole":
		outage, open = m.ended.Sub(m.began), false
	case "none":
		outage, open = 0, false
	}
	v["outage-ms"] = millis(outage)
	if open {
		v["unended"] = 1
	}
}

// unexplained is the sum of the gaps without the time in which the switch was silent or the client
// itself did not get to ask. What is left may be the client's interval before and after.
func unexplained(gaps []observe.Gap, silences []observe.Span) (sum time.Duration) {
	for _, g := range gaps {
		left := g.Duration() - g.Paused
		for _, s := range silences {
			to := s.To
			if g.To.Before(to) {
				to = g.To
			}
			left -= max(0, to.Sub(later(g.From, s.From)))
		}
		if left > 3*slowAskInterval {
			sum += left
		}
	}
	return sum
}

// lastChange is how long after its beginning a timeline's holders changed last.
func lastChange(tl observe.Timeline) (last time.Duration) {
	for _, s := range tl.Spans {
		last = max(last, s.From.Sub(tl.From))
		if s.To.Before(tl.To) {
			last = max(last, s.To.Sub(tl.From))
		}
	}
	return last
}

// roundTrip returns the median time that the client waits for an answer from the
// address when nothing is wrong.
func roundTrip(client *netns.Host) (time.Duration, error) {
	conn, err := netns.Within(client, func() (*net.UDPConn, error) {
		return net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(vip, observe.Port)))
	})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var trips []time.Duration
	var buf [16]byte
	for range roundTrips {
		asked := time.Now()
		_, err := conn.Write(buf[:8])
		err = errors.Join(err, conn.SetReadDeadline(asked.Add(time.Second)))
		if err == nil {
			_, err = conn.Read(buf[:])
		}
		if err != nil {
			return 0, fmt.Errorf("time the way to %s: %w", vip, err)
		}
		trips = append(trips, time.Since(asked))
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// neighbours returns what a host's kernel has learned by ARP.
func neighbours(h *netns.Host) string {
	text, err := netns.Within(h, func() ([]byte, error) { return os.ReadFile("/proc/thread-self/net/arp") })
	if err != nil {
		return err.Error()
	}
	return string(text)
}
