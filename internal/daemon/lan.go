package daemon

import (
	"context"
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

// lan is the network around this board, apart from the boards of the group. When the core
// doubts that it hears anything, the LAN is asked by ARP. The machine that has announced the floating
// address is asked whether it still answers for it. The witnesses and some neighbours are asked
// to find out whether anything arrives on this board's port at all; for the same reason the frames of other hosts are
// counted. Without a doubt, nothing is sent, read or counted.
type lan struct {
	shared
	link     *link
	group    *group
	answered func(netio.ARPAnswer) // in the loop

	local      netip.Addr // this board's own address there
	announcer  Announcer  // nil while the link is closed
	neighbours Neighbours // nil while the link is closed, or if there is none
	table      []netio.Neighbour
	gateway    netip.Addr // none if it is not on this link
	readAt     time.Duration
	reading    int // counts the readings of the table, so that the result of an old one is recognized

	witness   config.Witness
	witnesses []witness
	// answerers are witnesses that have answered at least once, the newest first. They outlive the link: a
	// gateway that has answered for weeks still counts when this board gets another address.
	answerers []netip.Addr

	// The last question.
	asking   bool // nothing was heard since it was asked
	askedAt  time.Duration
	doubtEnd time.Duration // when the doubt is over, and the witnesses are asked once more; never without a doubt
	// seen are the hosts whose frames were counted last. They are asked in the next doubt: this board
	// expects to hear a host that it has heard once.
	seen []netio.Neighbour
}

const (
	// neighboursMax is how many hosts are asked that are no witnesses.
	neighboursMax = 3
	// tableLasts is how long the kernel's table of neighbours is used before it is read again. A doubt
	// takes no longer, and a board's MAC address does not change meanwhile.
	tableLasts = time.Second
	// answersWithin is how long an answer may take.
	answersWithin = time.Second
	// doubtLasts is how long a doubt lasts after its last question. A board that waits for
	// the first frame asks in every interval, which is 10 s at most.
	doubtLasts = 15 * time.Second
)

func newLAN(s shared, w config.Witness, l *link, g *group, answered func(netio.ARPAnswer)) *lan {
	return &lan{shared: s, link: l, group: g, witness: w, answered: answered, readAt: -time.Hour, doubtEnd: never}
}

// open begins to listen for answers when the link has been opened.
func (l *lan) open(announcer Announcer, index int, local netip.Addr) {
	l.announcer, l.local = announcer, local
	announcer.Answers(func(answer netio.ARPAnswer) { l.tasks.tryPost(func() { l.receive(answer) }) })
	if l.platform.OpenNeighbours == nil {
		return
	}
	neighbours, err := l.platform.OpenNeighbours(index)
	if err != nil {
		l.failed(err)
		return
	}
	l.neighbours = neighbours
}

// close is called when the link is closed.
func (l *lan) close() {
	l.announcer, l.table, l.witnesses, l.seen = nil, nil, nil, nil
	l.reading++
	l.readAt, l.asking, l.doubtEnd = -time.Hour, false, never
	if l.neighbours != nil {
		l.reporter.failed("close the table of neighbours", l.neighbours.Close())
		l.neighbours = nil
	}
}

// ask asks the LAN because the core doubts. suspect is the own address of the board that had
// the floating address, or none.
func (l *lan) ask(suspect netip.Addr) {
	l.asking, l.askedAt = true, l.now()
	l.doubtEnd = l.askedAt + doubtLasts
	if l.announcer == nil {
		return
	}
	// The hosts that are known are asked at once, since the answers have to be back before the
	// grace is over. Those in the kernel's table are asked when it was read.
	began, asked := l.askedAt, l.addressQuestions(suspect)
	l.failed(l.announcer.Doubt(netio.Doubt{
		Questions: l.withWitnesses(began, asked), Port: l.link.outside(), Ignored: l.group.hosts(),
	}))
	if l.now()-l.readAt <= tableLasts {
		return
	}
	l.readTable(func() {
		var more []netio.ARPQuestion
		for _, q := range l.addressQuestions(suspect) {
			if !slices.ContainsFunc(asked, func(a netio.ARPQuestion) bool { return slices.Equal(a.To, q.To) }) {
				more = append(more, q)
			}
		}
		l.send(l.withWitnesses(began, append(more, l.neighbourQuestions()...)))
	})
}

// addressQuestions ask whether a machine answers for the floating address. They go to the machine
// that has announced it last, and to the suspected board, by their Ethernet addresses: a proxy
// could answer a question to everybody.
func (l *lan) addressQuestions(suspect netip.Addr) (questions []netio.ARPQuestion) {
	if !suspect.IsValid() {
		return nil
	}
	addr := l.link.firstFloating()
	questions = []netio.ARPQuestion{{Addr: addr, ToAnnouncer: true}}
	for _, n := range l.table {
		if n.Addr == suspect && len(n.MAC) > 0 {
			questions = append(questions, netio.ARPQuestion{Addr: addr, To: n.MAC})
		}
	}
	return questions
}

// neighbourQuestions ask some hosts that were heard lately, or that the kernel knows. They are not
// witnesses, so they need not answer. But the only other host here may be a client that believes the floating
// address to be elsewhere. Boards are left out: the kernel of a lost leader
// may answer, which proves nothing, and the core asks the others.
func (l *lan) neighbourQuestions() (questions []netio.ARPQuestion) {
	hosts := slices.Clone(l.seen)
	if !l.link.isMixed() {
		hosts = append(hosts, l.table...)
	}
	for _, n := range hosts {
		asked := slices.ContainsFunc(l.witnesses, func(w witness) bool { return w.addr == n.Addr }) ||
			slices.ContainsFunc(questions, func(q netio.ARPQuestion) bool { return q.Addr == n.Addr })
		if len(questions) < neighboursMax && !asked && !slices.Contains(l.group.hosts(), n.Addr) {
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

// resolve lets the kernel learn the Ethernet address of a board.
func (l *lan) resolve(board netip.Addr) {
	if l.announcer != nil {
		l.failed(l.announcer.Resolve(board))
	}
}

// waits reports whether the core, or a question to a witness, still waits for an answer. Other questions would make
// the announcer forget these.
func (l *lan) waits() bool {
	now := l.now()
	waits := l.doubtEnd != never && now-l.askedAt < answersWithin
	for i := range l.witnesses {
		waits = waits || now-l.witnesses[i].askedAt < answersWithin
	}
	return waits
}

// announce tells the neighbours this board's present Ethernet address.
func (l *lan) announce() { l.resolve(l.local) }

// hostWith names a machine for people: by its Ethernet address, and by its IP address if the kernel knows that. called
// names a board.
func (l *lan) hostWith(mac net.HardwareAddr, called func(wire.ID) string) string {
	i := slices.IndexFunc(l.table, func(n netio.Neighbour) bool { return slices.Equal(n.MAC, mac) && !l.link.isFloating(n.Addr) })
	if i < 0 {
		if l.doubtEnd == never && l.now()-l.readAt > time.Minute {
			l.readTable(func() {}) // so that the next time it can
		}
		return mac.String()
	}
	if host := l.table[i].Addr; slices.Contains(l.group.hosts(), host) {
		return fmt.Sprintf("%v, which is the board %s,", mac, called(wire.IDFromAddr(host)))
	}
	return fmt.Sprintf("%v, which is %v,", mac, l.table[i].Addr)
}

// failed warns that a doubt may last because of an error. A link that is down is reported elsewhere.
func (l *lan) failed(err error) {
	if err != nil && !isLinkDown(err) {
		l.reporter.warn(console.ProblemAskLAN, err.Error(), time.Minute)
	}
}

// receive handles an answer, in the loop.
func (l *lan) receive(answer netio.ARPAnswer) {
	for i := range l.witnesses {
		if w := &l.witnesses[i]; w.receive(answer) && !l.hasAnswered(w) {
			l.answerers = append([]netip.Addr{w.addr}, l.answerers...)
			l.answerers = l.answerers[:min(len(l.answerers), answerersMax)]
		}
	}
	l.answered(answer)
}

// heardFrames reports whether frames of other hosts have arrived since the core asked, and
// nothing else was heard before. If frames could not be counted, ask has reported why.
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
	if l.neighbours == nil {
		l.chooseWitnesses()
		done()
		return
	}
	l.reading++
	number, neighbours := l.reading, l.neighbours
	l.tasks.start(func(context.Context) error {
		table, err := neighbours.List()
		gateway, found, gatewayErr := neighbours.Gateway()
		l.tasks.post(func() {
			if number != l.reading {
				return // the link was closed, or another reading was begun
			}
			l.failed(err)
			l.failed(gatewayErr)
			l.table, l.gateway, l.readAt = table, netip.Addr{}, l.now()
			if found {
				l.gateway = gateway
			}
			l.chooseWitnesses()
			done()
		})
		return nil
	})
}

// due is when the doubt is over, or a witness is asked again that has not answered.
func (l *lan) due() time.Duration { return min(l.doubtEnd, l.retryAt()) }

// maintain ends a doubt that is over. It asks the witnesses once more, to know
// which of them count in the next doubt.
func (l *lan) maintain(now time.Duration) {
	l.askWhich(func(w *witness) bool { return now >= w.retryAt() })
	if now >= l.doubtEnd {
		l.asking, l.doubtEnd = false, never
		if l.announcer != nil {
			l.failed(l.announcer.Calm())
		}
		l.findWitnesses()
	}
}

// hasAnswered reports whether a witness has ever answered, on this link or an earlier one.
func (l *lan) hasAnswered(w *witness) bool { return slices.Contains(l.answerers, w.addr) }

// setWitness replaces the configured witnesses, and asks them.
func (l *lan) setWitness(w config.Witness) {
	l.witness = w
	l.chooseWitnesses()
	if l.announcer != nil {
		l.send(l.withWitnesses(l.now(), nil))
	}
}

// findWitnesses finds out which witnesses there are, and asks them.
func (l *lan) findWitnesses() { l.readTable(func() { l.send(l.withWitnesses(l.now(), nil)) }) }

// withWitnesses adds questions to all witnesses that were not asked since then.
func (l *lan) withWitnesses(since time.Duration, questions []netio.ARPQuestion) []netio.ARPQuestion {
	now := l.now()
	for i := range l.witnesses {
		if w := &l.witnesses[i]; w.askedAt < since {
			questions = append(questions, w.ask(now))
		}
	}
	return questions
}

// askWhich asks those witnesses again for which a condition holds.
func (l *lan) askWhich(holds func(*witness) bool) {
	var questions []netio.ARPQuestion
	for i := range l.witnesses {
		if w := &l.witnesses[i]; holds(w) {
			questions = append(questions, w.ask(l.now()))
		}
	}
	l.send(questions)
}

// excuseWitnesses is called while nothing arrives at all: the silence of a witness proves nothing then.
func (l *lan) excuseWitnesses() {
	for i := range l.witnesses {
		l.witnesses[i].vain = 0
	}
}

// retryAt is when the next witness is asked again because it has not answered.
func (l *lan) retryAt() time.Duration {
	next := never
	for i := range l.witnesses {
		next = min(next, l.witnesses[i].retryAt())
	}
	return next
}

// chooseWitnesses brings the list of witnesses in line with the configuration and the routes.
func (l *lan) chooseWitnesses() {
	addrs := l.witness.Addrs
	if l.witness.Gateway && l.gateway.IsValid() {
		addrs = []netip.Addr{l.gateway}
	}
	former := l.witnesses
	l.witnesses = nil
	for _, addr := range addrs {
		w := witness{addr: addr, askedAt: -time.Hour, since: -time.Hour}
		if i := slices.IndexFunc(former, func(f witness) bool { return f.addr == addr }); i >= 0 {
			w = former[i]
		}
		w.configured = !l.witness.Gateway
		l.witnesses = append(l.witnesses, w)
	}
}

// status fills in what topdog status shows of it.
func (l *lan) status(s *console.Status) {
	now := l.now()
	for _, w := range l.witnesses {
		waits := w.present && now-w.since < witnessAnswers // for the answer
		s.Witnesses = append(s.Witnesses, console.Witness{Address: w.addr.String(), Answers: w.heard || waits})
	}
	l.askWhich(func(w *witness) bool { return w.missed(now) && now-w.askedAt >= lookAgain })
}

// problems returns a problem for each witness that does not answer.
func (l *lan) problems() (found []console.Problem) {
	for i := range l.witnesses {
		if w := &l.witnesses[i]; w.missed(l.now()) {
			found = append(found, console.Problem{Kind: console.ProblemWitness, Text: w.problem(l.hasAnswered(w))})
		}
	}
	return found
}
