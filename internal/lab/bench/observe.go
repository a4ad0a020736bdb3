package bench

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
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
)

// measuring is a measure that has begun.
type measuring struct {
	key          string
	began, ended time.Time
	seen         []seen            // of each view
	old          net.HardwareAddr  // of the leader
	how          map[string]string // what the scene says about it
	more         map[string]float64
	cost         func() (map[string]float64, error) // nil unless it is about what a calm group costs
}

// seen is what a client has seen before a measure.
type seen struct {
	answers int           // how many there had been
	trip    time.Duration // from a question to its answer
}

// view is what is seen of one floating address: by a client that asks there, by who asks each board whether it answers for the
// address, and by the kernels.
type view struct {
	address netip.Addr
	of      string // what the names of its figures begin with
	asker   *observe.Asker
	prober  *observe.Prober // nil unless the event wants it
	holders *observe.Holders
}

// ipv6 is what the names of the figures of an IPv6 address begin with. Those of an IPv4 address have nothing before them.
const ipv6 = "v6-"

// views are those of the group's addresses. The client asks a service by IPv4 alone.
func (g *Group) views(e *event) []*view {
	all := []*view{{address: vip, holders: g.Holders}}
	if g.sys.IPv6 && !e.is("served") {
		all = append(all, &view{address: vip6, of: ipv6, holders: g.Holders6})
	}
	return all
}

// observe lets the client ask who answers, or the boards' service, and waits until the leader does. What a calm group costs is measured without a client.
func (s *stage) observe() (err error) {
	e, every := s.event, s.askEvery()
	if e.is("calm") {
		return nil
	}
	if e.is("coarse") {
		every = slowAskInterval
	}
	if s.heard, err = s.hearAnnouncements(); err != nil {
		return err
	}
	s.ends = append(s.ends, s.heard.close)
	if e.is("probed") {
		for _, w := range s.views {
			if w.prober, err = s.probe(w.address); err != nil {
				return err
			}
			s.ends = append(s.ends, w.prober.Close)
		}
	}
	if err := s.ask(every); err != nil || e.is("cold") {
		return err
	}
	if e.is("restless") {
		return s.orNever(s.awaitAnswer(s.maxOutage(), anybody))
	}
	if err := s.awaitAnswer(s.maxOutage(), s.leads); err != nil {
		return fmt.Errorf("%s alone has had the address for %v, and does not answer: %w\nThe client's kernel knows:\n%s",
			s.leader.Name, s.sys.stableFor(), err, neighbours(s.Group.LAN.Client()))
	}
	return nil
}

// askEvery is how often the client asks where milliseconds count.
func (s *stage) askEvery() time.Duration {
	if s.sys.slow() && !s.event.is("cold") {
		return slowAskInterval
	}
	return askInterval
}

// ask lets the client ask so often from here on, who answers or the boards' service.
func (s *stage) ask(every time.Duration) (err error) {
	for _, w := range s.views {
		if w.asker != nil {
			w.asker.Close()
		}
		if s.event.is("served") {
			w.asker, err = s.Group.LAN.AskBy(func(conn *net.UDPConn) observe.Line {
				s.names = newNameLine(conn, vip)
				return s.names
			}, every)
		} else {
			w.asker, err = s.Group.LAN.Ask(w.address, every)
		}
		if err != nil {
			return err
		}
		s.ends = append(s.ends, w.asker.Close)
	}
	s.Asker = s.views[0].asker
	return nil
}

// Measure begins a measure, and ends the one before.
func (s *stage) Measure(key, _ string) error {
	if err := s.Measured(); err != nil {
		return err
	}
	m := &measuring{key: key, how: map[string]string{}}
	if s.event.is("calm") {
		var err error
		if m.cost, err = s.watchCost(); err != nil {
			return err
		}
	} else {
		for _, w := range s.views {
			var before seen
			_, before.answers = w.asker.Gaps(0)
			if s.names == nil && s.event.of == nil {
				before.trip = w.asker.Trip()
			}
			m.seen = append(m.seen, before)
		}
	}
	if s.leader != nil {
		m.old = slices.Clone(s.leader.HardwareAddr)
	}
	m.began = time.Now()
	s.now = m
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
	return s.record(m)
}

// recordOpen records what ends with the scene.
func (s *stage) recordOpen() (err error) {
	for _, m := range s.open {
		err = errors.Join(err, s.record(m))
	}
	for _, add := range s.later {
		add()
	}
	return err
}

// record adds the figures of a measure: of an event, or of the benchmark that its name says.
func (s *stage) record(m *measuring) (err error) {
	m.ended = time.Now()
	one := sample{failover, labels{"system": s.sys.key, "event": m.key}, nil}
	if s.event.of != nil {
		one.bench, one.of = m.key, maps.Clone(s.event.of)
		one.of["system"] = s.sys.key
	}
	if m.cost != nil {
		one.values, err = m.cost()
	} else {
		one.values, err = s.figures(m)
	}
	v := one.values
	switch {
	case err != nil:
		return err
	case one.bench == start && v["unended"] > 0:
		return fmt.Errorf("nobody answers; the boards say\n%s", s.logs())
	case one.bench == start:
		one.values = map[string]float64{"start-ms": v["outage-ms"]}
	case one.bench == loss0:
		one.values = map[string]float64{
			"watched-s": m.ended.Sub(m.began).Seconds(), "moves": v["moves"], "two-ms": v["two-ms"], "unanswered-ms": v["outage-ms"],
		}
	case one.bench == curve:
		watched := m.ended.Sub(m.began)
		one.values = map[string]float64{
			"watched-s": watched.Seconds(), "moves/min": v["moves"] / watched.Minutes(), "two-ms": v["two-ms"],
			"unanswered-ms": v["outage-ms"], "late-ms": v["late-ms"],
		}
	}
	s.samples = append(s.samples, one)
	return nil
}

// figures are those of a measure. There is always a gap since the last answer, so it waits for one more, if the client may
// get one: then a gap that is still open is an outage for which the bench does not wait any longer.
func (s *stage) figures(m *measuring) (map[string]float64, error) {
	if !slices.Contains([]string{"whole", "none", "now"}, m.how["outage"]) {
		if err := s.orNever(s.awaitAnswer(s.maxOutage(), anybody)); err != nil {
			return nil, err
		}
	}
	if m.how["from"] == "frame" {
		m.began = s.passed
	}
	v := map[string]float64{}
	for i, w := range s.views {
		s.countView(m, w, m.seen[i], v)
	}
	others := without(s.heard.since(m.began), func(a kept) bool { return bytes.Equal(a.from, m.old) })
	v["announcements"] = float64(len(others))
	maps.Copy(v, m.more)
	return v, nil
}

// countView adds the figures of one address to those of a measure.
func (s *stage) countView(m *measuring, w *view, before seen, v map[string]float64) {
	client, held := w.asker.Report(m.began), w.holders.Since(m.began)
	v[w.of+"two-ms"], v[w.of+"none-ms"], v[w.of+"moves"] = millis(held.Overlap()), millis(held.Vacant()), float64(held.Moves())
	v["late-ms"] = max(v["late-ms"], millis(client.Pause))
	s.countOutage(m, w, before, client, held, v)
	if before.trip > 0 {
		v[w.of+"trip-ms"] = millis(before.trip)
	}
	from := m.began
	switch m.how["holders"] {
	case "from-frame":
		from = s.passed
		v[w.of+"two-ms"] = millis(w.holders.Since(from).Overlap())
	case "afterwards":
		s.later = append(s.later, func() {
			v[w.of+"two-ms"] = millis(w.holders.Since(m.ended).Overlap())
			w.countLasting(v)
		})
	}
	w.countLasting(v)
	if w.prober != nil {
		v[w.of+"two-answer-ms"] = millis(w.prober.Since(from).Overlap())
	}
}

// countLasting notes whether there still are two holders: two-ms is then the least that it can be.
func (w *view) countLasting(v map[string]float64) {
	delete(v, w.of+"two-lasts")
	if len(w.holders.Current()) > 1 {
		v[w.of+"two-lasts"] = 1
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
func (s *stage) countOutage(m *measuring, w *view, before seen, client observe.Report, held observe.Timeline, v map[string]float64) {
	outage, open := client.Waited, client.Longest.After == 0 // there was no answer after the gap
	if s.names != nil {
		lost := s.names.silences(m.began)
		outage, open = lost.longest, lost.open
	}
	until := client.First.At.Sub(m.began)
	switch m.how["outage"] {
	case "sum":
		outage = client.Unanswered
	case "unexplained":
		gaps, _ := w.asker.Gaps(before.answers)
		outage = unexplained(gaps, s.halted)
	case "start", "first":
		if outage, open = until, client.First.Board == 0; open {
			outage = time.Since(m.began)
		} else if m.how["outage"] == "start" {
			// That another board begins than led before is no move.
			v[w.of+"moves"] = float64(w.holders.Since(client.First.At).Moves())
		}
	case "last":
		outage = max(until, lastChange(held), 0)
	case "whole":
		outage, open = m.ended.Sub(m.began), false
	case "none":
		outage, open = 0, false
	}
	v[w.of+"outage-ms"] = millis(outage)
	if open {
		v[w.of+"unended"] = 1
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

// neighbours returns what a host's kernel has learned by ARP.
func neighbours(h *netns.Host) string {
	text, err := netns.Within(h, func() ([]byte, error) { return os.ReadFile("/proc/thread-self/net/arp") })
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// watchCost begins to count packets, and what the boards need for them. The figures are those since then, of boards and
// of each of their programs; followers are the mean of all.
func (s *stage) watchCost() (figures func() (map[string]float64, error), err error) {
	traffic, err := s.hearTraffic()
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, traffic.close)
	before, err := s.usage()
	began := time.Now()
	return func() (map[string]float64, error) {
		after, err := s.usage()
		if err != nil {
			return nil, err
		}
		watched, packets, bytes := time.Since(began), traffic.since(began), 0
		for _, p := range packets {
			bytes += p.length
		}
		v := map[string]float64{"watched-s": watched.Seconds(), "packets/s": float64(len(packets)) / watched.Seconds()}
		if len(packets) > 0 {
			v["bytes/packet"] = float64(bytes) / float64(len(packets))
		}
		for i, b := range s.boards {
			who, share := "follower-", 1/float64(max(1, len(s.boards)-1))
			if b == s.leader {
				who, share = "leader-", 1
			}
			for name, u := range after[i] {
				cpu := 100 * share * float64(u.busy-before[i][name].busy) / float64(watched)
				v[who+"cpu-%"] += cpu
				v[who+name+"-cpu-%"] += cpu
				v[who+name+"-wakes/s"] += share * float64(u.wakes-before[i][name].wakes) / watched.Seconds()
				v[who+name+"-rss-MB"] += share * float64(u.rss) / 1e6
				v[who+"rss-MB"] += share * float64(u.rss) / 1e6
				v[who+"pss-MB"] += share * float64(u.pss) / 1e6
			}
		}
		return v, nil
	}, err
}
