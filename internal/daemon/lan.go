package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// lan is the network around this board, apart from the boards of the group. When the core doubts that this board hears
// anything, lan asks by ARP. It asks the machine that has announced the floating address whether it still answers for it.
// It asks the witnesses and some neighbours to find out whether anything arrives on this board's port at all, and counts
// the frames of other hosts for the same reason. Without a doubt, it sends, reads and counts nothing.
type lan struct {
	shared
	link     *link
	group    *group
	answered func(netio.ARPAnswer)   // is called in the loop
	watched  func(netio.WatchReport) // likewise
	watch    watch

	announcer Announcer // nil while the link is closed
	index     int       // of the interface; 0 while the link is closed
	table     netio.Neighbours
	readAt    time.Duration
	reading   int  // counts the readings of the table, to recognize the result of an old one
	underWay  bool // the latest one has not ended

	configured config.Witness
	witnesses  []*witness

	// The last question.
	asking   bool // nothing was heard since it was asked
	askedAt  time.Duration
	doubtEnd time.Duration // when the doubt is over, and the witnesses are asked once more; never without a doubt
	// seen are the hosts whose frames were counted last. They are asked in the next doubt: this board expects to hear a
	// host that it has heard once.
	seen []netio.Neighbour
}

const (
	// neighboursMax is how many hosts that are no witnesses are asked.
	neighboursMax = 3
	// tableLasts is how long the kernel's table of neighbours is used before it is read again. A doubt takes no longer,
	// and no board changes its MAC address meanwhile.
	tableLasts = time.Second
	// answersWithin is how long an answer may take.
	answersWithin = time.Second
	// doubtLasts is how long a doubt lasts after its last question. A board that waits for the first frame asks in every
	// interval, which is 10 s at most.
	doubtLasts = 15 * time.Second
)

func newLAN(s shared, w config.Witness, l *link, g *group, answered func(netio.ARPAnswer), watched func(netio.WatchReport)) *lan {
	return &lan{shared: s, link: l, group: g, configured: w, answered: answered, watched: watched, readAt: -time.Hour, doubtEnd: never}
}

// open begins to listen for answers when the link has been opened.
func (l *lan) open(announcer Announcer, index int) {
	l.announcer, l.index = announcer, index
	if announcer != nil {
		announcer.Answers(func(answer netio.ARPAnswer) { l.tasks.tryPost(func() { l.receive(answer) }) })
		announcer.Watched(func(r netio.WatchReport) { l.tasks.tryPost(func() { l.watched(r) }) })
	}
}

// close is called when the link is closed.
func (l *lan) close() {
	l.announcer, l.index, l.table.Hosts, l.witnesses, l.seen, l.watch = nil, 0, nil, nil, nil, watch{}
	l.reading++
	l.underWay, l.readAt, l.asking, l.doubtEnd = false, -time.Hour, false, never
}

// ask asks the LAN because the core doubts. suspect is the own address of the board that had the floating address, or
// none. Hosts that are known are asked at once, since their answers have to be back before the grace is over. Those in
// the kernel's table are asked when it has been read.
func (l *lan) ask(suspect netip.Addr) {
	l.asking, l.askedAt = true, l.now()
	l.doubtEnd = l.askedAt + doubtLasts
	if l.announcer == nil {
		return
	}
	began, asked := l.askedAt, l.addressQuestions(suspect)
	l.failed(l.announcer.Doubt(netio.Doubt{
		Questions: append(asked, l.askWitnesses(began)...), Port: l.link.outside(), Ignored: l.group.hosts(),
	}))
	if l.now()-l.readAt <= tableLasts {
		return
	}
	l.readTable(func() {
		more := slices.DeleteFunc(l.addressQuestions(suspect), func(q netio.ARPQuestion) bool {
			return slices.ContainsFunc(asked, func(a netio.ARPQuestion) bool { return slices.Equal(a.To, q.To) })
		})
		more = append(more, l.neighbourQuestions()...)
		l.send(append(more, l.askWitnesses(began)...))
	})
}

// addressQuestions ask whether a machine answers for the floating address. They go to the machine that has announced it last,
// and to the suspected board, by their Ethernet addresses: a proxy could answer a question to everybody.
func (l *lan) addressQuestions(suspect netip.Addr) (questions []netio.ARPQuestion) {
	if !suspect.IsValid() {
		return nil
	}
	addr := l.link.firstFloating()
	questions = []netio.ARPQuestion{{Addr: addr, ToAnnouncer: true}}
	for _, n := range l.table.Hosts {
		if n.Addr == suspect && len(n.MAC) > 0 {
			questions = append(questions, netio.ARPQuestion{Addr: addr, To: n.MAC})
		}
	}
	return questions
}

// neighbourQuestions ask some hosts that were heard lately, or that the kernel knows. They are not witnesses, so they need not
// answer; but the only other host here may be a client that believes the floating address to be elsewhere. Boards are left
// out: the kernel of a lost leader may answer, which proves nothing, and the core asks the others.
func (l *lan) neighbourQuestions() (questions []netio.ARPQuestion) {
	hosts := slices.Clone(l.seen)
	if !l.link.isMixed() {
		hosts = append(hosts, l.table.Hosts...)
	}
	for _, n := range hosts {
		asked := slices.ContainsFunc(l.witnesses, func(w *witness) bool { return w.addr == n.Addr }) ||
			slices.ContainsFunc(questions, func(q netio.ARPQuestion) bool { return q.Addr == n.Addr })
		if len(questions) < neighboursMax && n.Addr.Is4() && !asked && !slices.Contains(l.group.hosts(), n.Addr) {
			questions = append(questions, netio.ARPQuestion{Addr: n.Addr, To: n.MAC})
		}
	}
	return questions
}

func (l *lan) send(questions []netio.ARPQuestion) {
	if len(questions) > 0 && l.announcer != nil {
		l.failed(l.announcer.Ask(questions))
	}
}

// resolve lets the kernel learn the Ethernet address of a board. If the address is this board's own, it tells the
// neighbours the present Ethernet address.
func (l *lan) resolve(board netip.Addr) {
	if l.announcer != nil {
		l.failed(l.announcer.Resolve(board))
	}
}

// waits reports whether the core, or a question to a witness, still waits for an answer. Another question would make the
// announcer forget these.
func (l *lan) waits() bool {
	recent := func(at time.Duration) bool { return l.now()-at < answersWithin }
	return l.doubtEnd != never && recent(l.askedAt) ||
		slices.ContainsFunc(l.witnesses, func(w *witness) bool { return recent(w.askedAt) })
}

// hostWith names a machine for people: by its Ethernet address, and by its IP address if the kernel knows that. called
// names a board.
func (l *lan) hostWith(mac net.HardwareAddr, called func(wire.ID) string) string {
	i := slices.IndexFunc(l.table.Hosts, func(n netio.Neighbour) bool {
		return slices.Equal(n.MAC, mac) && !l.link.isFloating(n.Addr) && !l.link.isOthers(n.Addr)
	})
	if i < 0 {
		if l.doubtEnd == never && l.now()-l.readAt > time.Minute {
			l.readTable(func() {}) // the next call may find it there
		}
		return mac.String()
	}
	if host := l.table.Hosts[i].Addr; slices.Contains(l.group.hosts(), host) {
		return fmt.Sprintf("%v, which is the board %s,", mac, called(wire.IDFromAddr(host)))
	}
	return fmt.Sprintf("%v, which is %v,", mac, l.table.Hosts[i].Addr)
}

// failed warns that a doubt may last because of an error. A link that is down is reported elsewhere.
func (l *lan) failed(err error) {
	if err != nil && !errors.Is(err, netio.ErrLinkDown) {
		l.reporter.warn(console.ProblemAskLAN, err.Error())
	}
}

// receive handles an answer, in the loop.
func (l *lan) receive(answer netio.ARPAnswer) {
	for _, w := range l.witnesses {
		w.receive(answer)
	}
	l.answered(answer)
}

// heardFrames reports whether frames of other hosts have arrived since the core asked, and nothing else was heard before. If
// frames could not be counted, ask has reported why.
func (l *lan) heardFrames() bool {
	if !l.asking || l.announcer == nil {
		return false
	}
	frames, senders, err := l.announcer.Heard()
	if err != nil || frames == 0 {
		return false
	}
	l.asking = false
	l.remember(senders)
	return true
}

// remember notes the senders of frames that are hosts of this link.
func (l *lan) remember(senders []netio.Neighbour) {
	for _, s := range senders {
		if !l.link.reaches(s.Addr) || slices.ContainsFunc(l.seen, func(n netio.Neighbour) bool { return n.Addr == s.Addr }) {
			continue
		}
		l.seen = append([]netio.Neighbour{s}, l.seen...)
		l.seen = l.seen[:min(len(l.seen), neighboursMax)]
	}
}

// isNews reports whether an answer is the first thing that was heard since the core asked.
func (l *lan) isNews(answer netio.ARPAnswer) bool {
	if !l.asking || answer.AskedAt < l.askedAt {
		return false
	}
	l.asking = false
	return true
}

// readTable reads the kernel's table of neighbours in a task, and then calls done in the loop.
func (l *lan) readTable(done func()) {
	if l.platform.ReadNeighbours == nil || l.index == 0 {
		l.chooseWitnesses()
		done()
		return
	}
	l.reading++
	l.underWay = true
	number, index := l.reading, l.index
	l.tasks.start(func(context.Context) {
		table, err := l.platform.ReadNeighbours(index)
		l.tasks.post(func() {
			if number != l.reading {
				return // the link was closed, or another reading was begun
			}
			l.failed(err)
			l.table, l.readAt, l.underWay = table, l.now(), false
			l.chooseWitnesses()
			l.watchByTable()
			done()
		})
	})
}

// maintain asks silent witnesses again, and ends a doubt that is over. It then asks all witnesses once more, to know which
// of them count in the next doubt.
func (l *lan) maintain(now time.Duration) {
	var again []netio.ARPQuestion // in one go, since a question makes the announcer forget those before
	for _, w := range l.witnesses {
		if now >= w.retryAt() {
			again = append(again, w.ask(now))
		}
	}
	l.send(again)
	if now >= l.doubtEnd {
		l.asking, l.doubtEnd = false, never
		if l.announcer != nil {
			l.failed(l.announcer.Calm())
		}
		l.findWitnesses()
	}
}

// setWitness replaces the configured witnesses, and asks them.
func (l *lan) setWitness(w config.Witness) {
	l.configured = w
	l.chooseWitnesses()
	l.send(l.askWitnesses(l.now()))
}

// findWitnesses finds out which witnesses there are, and asks them.
func (l *lan) findWitnesses() { l.readTable(func() { l.send(l.askWitnesses(l.now())) }) }

// askWitnesses returns questions to the witnesses that were not asked since then.
func (l *lan) askWitnesses(since time.Duration) (questions []netio.ARPQuestion) {
	for _, w := range l.witnesses {
		if w.askedAt < since {
			questions = append(questions, w.ask(l.now()))
		}
	}
	return questions
}

// excuseWitnesses is called while nothing arrives at all: the silence of a witness proves nothing then.
func (l *lan) excuseWitnesses() {
	for _, w := range l.witnesses {
		w.vain = 0
	}
}

// chooseWitnesses brings the list of witnesses in line with the configuration and the routes.
func (l *lan) chooseWitnesses() {
	addrs := l.configured.Addrs
	if l.configured.Gateway && l.table.Gateway.IsValid() {
		addrs = []netip.Addr{l.table.Gateway}
	}
	former := l.witnesses
	l.witnesses = nil
	for _, addr := range addrs {
		w := &witness{addr: addr, askedAt: -time.Hour, since: -time.Hour}
		if i := slices.IndexFunc(former, func(f *witness) bool { return f.addr == addr }); i >= 0 {
			w = former[i]
		}
		l.witnesses = append(l.witnesses, w)
	}
}

// status fills in what topdog status shows of the witnesses.
func (l *lan) status(s *console.Status) {
	now := l.now()
	for _, w := range l.witnesses {
		waits := w.present && now-w.since < witnessAnswers // for the answer
		s.Witnesses = append(s.Witnesses, console.Witness{Address: w.addr.String(), Answers: w.heard || waits})
	}
}

// problems returns a problem for each witness that does not answer.
func (l *lan) problems() (found []console.Problem) {
	who, remedy := "witness", "switch it on, or name another host of this network that always runs"
	if l.configured.Gateway {
		who, remedy = "the gateway", "name another host of this network that always runs as `witness`"
	}
	for _, w := range l.witnesses {
		if w.missed(l.now()) {
			found = append(found, console.Problem{Kind: console.ProblemWitness, Text: fmt.Sprintf(
				"%s %v does not answer ARP requests, so it cannot show whether anything arrives on this board's port: %s", who, w.addr, remedy)})
		}
	}
	return found
}

// witness is a host whose answers show that this board's port receives.
type witness struct {
	addr    netip.Addr
	askedAt time.Duration // when it was asked last
	since   time.Duration // when it was asked first in the last doubt
	heard   bool          // it has answered since then
	present bool          // it has answered since then, or in the doubt before
	vain    int           // in how many doubts it was asked since its last answer
}

const (
	// witnessAnswers is how long a witness may take to answer: a Wi-Fi station that sleeps wakes for every third beacon of
	// 102 ms, and some sleep for longer.
	witnessAnswers = 500 * time.Millisecond
	// witnessMissed is how often a witness must be asked in vain before people are told.
	witnessMissed = 2
)

// witnessRetries are the times, each after the last question, at which a silent witness is asked again. The last one
// repeats. A question may be lost, and a port of a switch with spanning tree forwards nothing for 30 s after the link has
// come up.
var witnessRetries = [...]time.Duration{time.Second, 10 * time.Second, time.Minute}

// ask returns a question to the witness, and notes that it is asked now.
func (w *witness) ask(now time.Duration) netio.ARPQuestion {
	if now-w.since > witnessAnswers { // otherwise it may still answer the last question
		w.present, w.heard, w.since = w.heard, false, now
		w.vain++
	}
	w.askedAt = now
	return netio.ARPQuestion{Addr: w.addr}
}

// receive takes in an answer, perhaps of another host.
func (w *witness) receive(answer netio.ARPAnswer) {
	if w.addr == answer.Addr && answer.AskedAt >= w.since {
		w.present, w.heard, w.vain = true, true, 0
	}
}

// retryAt is when the witness is asked again because it has not answered.
func (w *witness) retryAt() time.Duration {
	if w.vain == 0 {
		return never
	}
	return w.askedAt + witnessRetries[min(w.vain, len(witnessRetries))-1]
}

// missed reports whether the witness has been silent for so long that people should know.
func (w *witness) missed(now time.Duration) bool {
	return w.vain > witnessMissed || w.vain == witnessMissed && now-w.since >= witnessAnswers
}
