package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
)

const (
	// twoHoldersTimeout is how long a run waits for the second holder to let go. If it has
	// not by then, it never will by itself, or it does not matter how much later.
	twoHoldersTimeout = 2 * time.Second
	// slotPatience is for how long a run in which nobody takes over keeps others waiting.
	slotPatience = 2 * time.Second
	// handoverFor is how long something may go on in a group whose interval is short,
	// after a return.
	handoverFor = 500 * time.Millisecond
	// phaseAttempts is how often the address may move while a part of the interval passes.
	phaseAttempts = 10
)

// stage is where the scene of an event is played once: a group, and what is seen of it meanwhile: by a client that asks all
// the time, by ARP from its place, and by the kernels of all boards, which report who has the address.
type stage struct {
	cluster.Stage
	*Group
	ctx    context.Context
	event  *event
	leader *board         // when the event began, or whom the scene has chosen
	mends  []func() error // what brings the group back to what it was
	again  bool           // all boards are started anew then
	views  []*view        // of the addresses
	slot   slot           // nil for a slow system
	has    bool           // whether this run has it
	ends   []func()       // what ends all that observes

	names   *nameLine // nil unless the client asks the boards' service
	heard   *tap      // announcements
	frames  *tap      // nil unless the scene listens for one
	began   time.Time
	halted  []observe.Span // while the switch forwarded nothing
	passed  time.Time      // when the first frame came for which the scene listened
	now     *measuring     // nil between two measures
	open    []*measuring   // those that end with the scene
	samples []sample
	later   []func() // what is added to the samples when the scene is over
	pulls   int      // how often it has waited for a part of the interval
}

// slot is for one run at a time in which milliseconds count. Groups become stable beside
// each other.
type slot chan struct{}

func newSlot() slot { return make(slot, 1) }

// turn is which one of the runs of an event a run is.
type turn struct {
	number int     // from 1
	phase  float64 // the part of the interval, 0 to 1, that passes between the leader's message and the event
}

// try does an event to the group, when it is stable, and returns what was measured. The group may not be stable afterwards.
func (g *Group) try(ctx context.Context, e *event, only slot, now turn) ([]sample, error) {
	s, err := g.newStage(ctx, e, only, now)
	if err == nil {
		err = e.scene.Play(s, uint64(now.number))
	}
	if err == nil {
		err = s.finish()
	}
	s.close()
	if err == nil && g.Lost() > 0 {
		err = cluster.ErrLost
	}
	return s.samples, errors.Join(err, ctx.Err())
}

// newStage waits until the group is stable, for the slot, and for the part of the interval of this turn. The stage is to
// be closed in any case.
func (g *Group) newStage(ctx context.Context, e *event, only slot, now turn) (*stage, error) {
	base := cluster.Stage{Cluster: g.Cluster, Boards: make([]*cluster.Topdog, len(g.boards))} // none of them is needed
	s := &stage{Stage: base, Group: g, ctx: ctx, event: e, views: g.views(e), slot: only}
	if g.sys.slow() {
		s.slot = nil
	}
	switch {
	case e.is("cold"):
	case e.is("restless"):
		if err := s.choose("soon"); err != nil {
			return s, err
		}
	default:
		if err := s.acquireStable(); err != nil {
			return s, err
		}
	}
	if e.is("coarse") {
		s.releaseSlot()
	}
	if err := s.observe(); err != nil {
		return s, err
	}
	if now.phase > 0 {
		if err := s.toPhase(now.phase); err != nil {
			return s, err
		}
		if h := s.Holders(); !slices.Equal(h, []int{s.leader.Number}) {
			return s, fmt.Errorf("%s led, and right before the event the address is on %v: %w", s.leader.Name, h, errNotStable)
		}
	}
	s.began = time.Now()
	return s, nil
}

// acquireStable waits until the group is stable and the run has the slot. While it waited for that
// the address may have moved, if this machine stood still.
func (s *stage) acquireStable() (err error) {
	for {
		if s.leader, err = s.stableLeader(s.ctx); err != nil {
			return err
		}
		if err := s.acquireSlot(); err != nil {
			return err
		}
		if s.steady(time.Time{}) == s.leader {
			return nil
		}
		s.releaseSlot()
	}
}

// toPhase waits for a message of the leader, and then for a part of the interval. A fault
// happens at a random moment. With the moments of the runs spread evenly over the interval,
// 20 runs say as much about the median as 400 that are not.
func (s *stage) toPhase(phase float64) error {
	heard, err := s.hearLeader(s.leader)
	if err != nil {
		return err
	}
	defer heard.close()
	at, err := heard.wait(s.ctx, 3*s.sys.H+time.Second)
	if err != nil {
		return err
	}
	return wait(s.ctx, time.Until(at.Add(time.Duration(phase*float64(s.sys.H)))))
}

// spread is the golden ratio: as many of its multiples as one likes lie evenly in an interval.
const spread = 0.6180339887498949

// nextPhase waits for another part of the interval of whoever leads then. In a group that knows no rest, any moment is as good.
func (s *stage) nextPhase() error {
	s.pulls++
	_, phase := math.Modf(float64(s.pulls) * spread)
	for range phaseAttempts {
		if b := s.holder(); b != nil {
			s.leader = b
		}
		if err := s.orNever(s.toPhase(phase)); err != nil {
			return err
		}
		if slices.Equal(s.Holders(), []int{s.leader.Number}) {
			break
		}
	}
	return nil
}

// acquireSlot waits until no other run has the slot.
func (s *stage) acquireSlot() error {
	if s.slot == nil || s.has {
		return nil
	}
	select {
	case s.slot <- struct{}{}:
		s.has = true
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// releaseSlot lets the next run begin.
func (s *stage) releaseSlot() {
	if s.has {
		s.has = false
		<-s.slot
	}
}

// finish records what was measured until the end, and brings the group back to what it was.
func (s *stage) finish() error {
	if err := errors.Join(s.Measured(), s.recordOpen()); err != nil {
		return err
	}
	s.releaseSlot()
	if err := s.Filter(nil); err != nil {
		return err
	}
	for _, mend := range slices.Backward(s.mends) {
		if err := mend(); err != nil {
			return err
		}
	}
	if s.again {
		return s.restart(s.ctx)
	}
	return nil
}

func (s *stage) close() {
	s.releaseSlot()
	for _, end := range s.ends {
		end()
	}
}

// What follows is the part of scene.Stage in which the bench differs from package cluster: boards run any program, and what a
// scene does to one is undone when the event is over.

// Named are the boards of a name that scenes of the bench have.
func (s *stage) Named(name string) (boards []int, known bool) {
	others := without(s.boards, func(b *board) bool { return b == s.leader })
	chosen, known := map[string][]*board{
		"leader": {s.leader}, "all": s.boards, "others": others, "another": others[:1], "heir": others[len(others)-1:],
	}[name]
	for _, b := range chosen {
		boards = append(boards, b.Number)
	}
	return boards, known
}

func (s *stage) Start(board int, _ []string) error {
	s.boards[board-1].thaw()
	return s.boards[board-1].start()
}

// Signal sends a signal. A board whose daemon ends is started anew when the event is over.
func (s *stage) Signal(number int, to scene.Processes, sig scene.Signal) error {
	b := s.boards[number-1]
	everything := to == scene.Everything
	switch sig {
	case scene.Thaw:
		b.thaw()
		return s.ctx.Err()
	case scene.Freeze:
		s.mend(func() error { b.thaw(); return nil })
		return b.signal(everything, unix.SIGSTOP)
	case scene.Terminate:
		s.mend(func() error { b.Ended(exitTimeout); return b.repair() })
		return b.Signal(unix.SIGTERM)
	}
	if everything {
		s.again = true
		return b.cleanUp()
	}
	s.mend(b.repair)
	return b.signal(false, unix.SIGKILL)
}

// mend has something done when the event is over.
func (s *stage) mend(do func() error) { s.mends = append(s.mends, do) }

func (s *stage) Cable(number int, in bool) error {
	if !in {
		s.mend(s.boards[number-1].Plug)
	}
	return errors.Join(s.Stage.Cable(number, in), s.ctx.Err())
}

// Filter has the switch lose frames. While it loses all of them, nobody can be blamed.
func (s *stage) Filter(filters []scene.Filter) error {
	now := time.Now()
	if n := len(s.halted); n > 0 && s.halted[n-1].To.IsZero() {
		defer func() { s.halted[n-1].To = time.Now() }()
	}
	for _, f := range filters {
		if f.From == nil && f.To == nil && !f.Multicast && f.Share == 0 {
			s.halted = append(s.halted, observe.Span{From: now})
		}
	}
	return errors.Join(s.Lose(filters, s.sys.traffic), s.ctx.Err())
}

// Seen lets two boards have the address: for how long is a figure.
func (s *stage) Seen() (moves int, two bool) { return s.Group.Holders.Since(s.began).Moves(), false }

// Pass may be interrupted. The next line says so.
func (s *stage) Pass(d time.Duration) { _ = wait(s.ctx, d) }

// Line does what only scenes of the bench have:
//
//	await takeover          another board has taken over for good
//	await another           another board answers the client, or heir, or leader; anybody with answer
//	await one               one board alone has the address
//	await frame             the first frame has passed between those for whom the scene listens
//	await phase             a part of the interval of whoever leads has passed, of each pulled cable another one
//	await pages             all pages show another leader; await hook: the script of the new leader was run
//	settle 2s 4H            watch for so long, the longest counts; others may begin when milliseconds do not count any more
//	pass 3s 5H              let so much time pass
//	alone                   milliseconds count from here on; beside: they do not any more
//	choose holder           from here on the leader is the board that has the address; steady: that has had it for a while, if
//	                        there is such a board; stable: the client sees that as well; soon: as steady, with less patience
//	ask often               the client asks every millisecond from here on; seldom: as often as it asks a slow system
//	listen leader client    listen for frames between these and all other boards; with client it is among the others
//	outage WAY              how the outage is counted; see count
//	holders afterwards      two holders count after the measure; from-frame: from the first frame
//	from frame              the measure counts from the first frame; until end: it lasts until the scene ends
//	leader readdress        its interface gets another Ethernet address
//	leader resign, leave, repair, kill-service, freeze-service, start-service, stop-service
func (s *stage) Line(words, _ []string) (known bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return true, err
	}
	more := words[1:]
	switch words[0] {
	case "await":
		return true, s.await(more[0])
	case "settle":
		return true, s.settle(more)
	case "pass":
		return true, wait(s.ctx, s.longest(more))
	case "alone":
		return true, s.acquireSlot()
	case "beside":
		s.releaseSlot()
		return true, nil
	case "choose":
		return true, s.choose(more[0])
	case "ask":
		return true, s.ask(map[string]time.Duration{"often": s.askEvery(), "seldom": slowAskInterval}[more[0]])
	case "listen":
		return true, s.listen(more)
	case "outage", "holders", "from", "until":
		s.now.how[words[0]] = more[0]
		return true, nil
	}
	named, known := s.Named(words[0])
	if !known || len(more) != 1 {
		return false, nil
	}
	do, known := boardLines[more[0]]
	for _, number := range named {
		if known && err == nil {
			err = do(s, s.boards[number-1])
		}
	}
	return known, err
}

// boardLines are the lines that do something to a board.
var boardLines = map[string]func(*stage, *board) error{
	"readdress":      (*stage).readdress,
	"resign":         (*stage).resign,
	"leave":          func(_ *stage, b *board) error { return b.leave() },
	"repair":         func(_ *stage, b *board) error { return b.repair() },
	"kill-service":   func(_ *stage, b *board) error { return b.killService() },
	"freeze-service": func(_ *stage, b *board) error { return b.freezeService() },
	"start-service":  func(_ *stage, b *board) error { return b.startService() },
	"stop-service":   func(_ *stage, b *board) error { return b.stopService() },
}

// resign has a board hand over, until the event is over.
func (s *stage) resign(b *board) error {
	if s.sys.program == keepalived {
		s.mend(func() error { return b.drain("0") })
	}
	return b.resign()
}

// readdress gives the board's interface another Ethernet address until the event is over. Then the client forgets where
// the address was: after some programs it would not learn that for a minute, and the next run would have to wait.
func (s *stage) readdress(b *board) error {
	own := b.HardwareAddr
	s.mend(func() error { return errors.Join(b.SetHardwareAddr(own), s.Group.LAN.Client().ForgetNeighbours()) })
	return b.SetHardwareAddr(net.HardwareAddr{2, 0, 0, 0, 0x99, byte(b.Number)})
}

// longest is the longest of some times, of which some may be in intervals: 5H.
func (s *stage) longest(texts []string) (most time.Duration) {
	for _, text := range texts {
		d, err := time.ParseDuration(text)
		if intervals, ok := strings.CutSuffix(text, "H"); ok {
			var n int
			n, err = strconv.Atoi(intervals)
			d = time.Duration(n) * s.sys.H
		}
		if err != nil {
			panic(fmt.Sprintf("%q is no time", text)) // It is a mistake in events.scene.
		}
		most = max(most, d)
	}
	return most
}

// watchAfter is how long a run goes on to look when all seems well.
func (s *stage) watchAfter() time.Duration {
	return min(max(3*s.sys.H, 100*time.Millisecond), 1500*time.Millisecond)
}

// settle waits, and lets the next run begin as soon as milliseconds do not count any more.
func (s *stage) settle(times []string) error {
	if len(times) == 0 {
		return wait(s.ctx, s.watchAfter())
	}
	d := s.longest(times)
	soon := min(d, max(handoverFor, s.watchAfter()))
	if err := wait(s.ctx, soon); err != nil {
		return err
	}
	s.releaseSlot()
	return wait(s.ctx, d-soon)
}

// choose makes the board that has the address the leader of the scene. If the group does not become stable in time, the holder
// of the moment is as good as any.
func (s *stage) choose(which string) error {
	if which == "holder" {
		if b := s.holder(); b != nil {
			s.leader = b
		}
		return nil
	}
	ctx := s.ctx
	if which == "soon" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*s.sys.stableFor())
		defer cancel()
	}
	chosen, lack := s.awaitStable(ctx)
	if lack != nil {
		chosen = cmp.Or(s.holder(), s.leader)
	}
	if chosen == nil {
		return lack
	}
	s.leader = chosen
	if which == "stable" {
		return s.awaitAnswer(s.maxOutage(), s.leads)
	}
	return nil
}

// listen begins to listen for frames between some boards and the others.
func (s *stage) listen(words []string) (err error) {
	var numbers []int
	var one, other []*netns.Host
	for name := range strings.SplitSeq(words[0], ",") {
		some, _ := s.Named(name)
		numbers = append(numbers, some...)
	}
	for _, b := range s.boards {
		if slices.Contains(numbers, b.Number) {
			one = append(one, b.Host)
		} else {
			other = append(other, b.Host)
		}
	}
	if len(words) > 1 {
		other = append(other, s.Group.LAN.Client())
	}
	if s.frames, err = s.hearBetween(one, other); err == nil {
		s.ends = append(s.ends, s.frames.close)
	}
	return err
}

// await waits for something that the scene wants, or that may never come: then the figures will say so.
func (s *stage) await(what string) (err error) {
	switch what {
	case "takeover":
		return s.awaitTakeover()
	case "one":
		return s.awaitOneHolder()
	case "frame":
		s.passed, err = s.frames.wait(s.ctx, s.maxOutage())
		s.frames.close() // Only the first one counts, and hearing the others would keep this machine busy.
		return err
	case "phase":
		return s.nextPhase()
	case "pages":
		shown, err := s.browsers.awaitOther(s.ctx, s.leader)
		s.now.more = map[string]float64{"pages-ms": millis(shown.Sub(s.now.began))}
		return err
	case "hook":
		return s.awaitHook()
	case "answer":
		return s.orNever(s.awaitAnswer(s.maxOutage(), anybody))
	case "another":
		return s.orNever(s.awaitAnswer(s.maxOutage(), s.leadsNot))
	}
	boards, _ := s.Named(what)
	return s.orNever(s.awaitAnswer(s.maxOutage(), func(n int) bool { return slices.Contains(boards, n) }))
}

// awaitTakeover waits until another board has taken over for good.
func (s *stage) awaitTakeover() error {
	if err := s.orNever(s.awaitAnswer(slotPatience, s.leadsNot)); err != nil {
		return err
	}
	if last, silent := s.Asker.Last(); last == s.leader.Number {
		if silent < handoverFor {
			s.releaseSlot() // It goes on answering, so it is no matter of milliseconds any more.
		}
		if err := s.orNever(s.awaitAnswer(s.maxOutage(), s.leadsNot)); err != nil {
			return err
		}
	}
	if err := wait(s.ctx, s.watchAfter()); err != nil {
		return err
	}
	if len(s.Holders()) > 1 {
		s.releaseSlot() // it won't be a matter of milliseconds any more
	}
	return s.awaitOneHolder()
}

// awaitOneHolder waits until one board alone has the address.
func (s *stage) awaitOneHolder() error {
	ctx, cancel := context.WithTimeout(s.ctx, twoHoldersTimeout)
	defer cancel()
	for _, w := range s.views {
		if err := s.orNever(w.holders.WaitFor(ctx, func(h []int) bool { return len(h) == 1 })); err != nil {
			return err
		}
	}
	return nil
}

// awaitHook reads when the script of the next leader was run.
func (s *stage) awaitHook() error {
	for _, span := range s.Group.Holders.Since(s.now.began).Spans {
		if span.Board == s.leader.Number {
			continue
		}
		ran, err := s.boards[span.Board-1].awaitHook(s.ctx, s.now.began)
		s.now.more = map[string]float64{"hook-ms": millis(max(0, ran.Sub(span.From)))} // keepalived may run it before
		return err
	}
	return fmt.Errorf("nobody took over from %s", s.leader.Name)
}

// maxOutage is how long the client's outage may last.
func (s *stage) maxOutage() time.Duration { return max(8*time.Second, 12*s.sys.H) }

// awaitAnswer waits for an answer of some board to the client, of one at each address.
func (s *stage) awaitAnswer(most time.Duration, of func(board int) bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, most)
	defer cancel()
	for _, w := range s.views {
		if _, err := w.asker.WaitAnswer(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

func anybody(int) bool { return true }

func (s *stage) leads(board int) bool { return board == s.leader.Number }

func (s *stage) leadsNot(board int) bool { return board != s.leader.Number }

// orNever takes no error for one that says that something has not come which may never come.
func (s *stage) orNever(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && s.ctx.Err() == nil {
		return nil
	}
	return err
}
