package daemon

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// step is something that happens to a board of a schedule.
type step struct {
	After int // milliseconds since the step before
	Board int
	Do    string
	For   int // milliseconds, or another number
}

// Each schedule may have an address of IPv6 too. Beside clean faults no two boards may hold the address. Those of the network may cut a leader off that does not notice it. A daemon
// that stands still does not notice that its cable is out, and another one may lead before its lease ends: it is not counted.
var (
	clean = []string{
		"unplug", "plug", "lose address", "lose address", "get address", "get another address", "freeze", "freeze", "kill", "stop", "start", "start",
		"drain", "undrain", "pause", "unpause", "resign", "reload",
	}
	ofNetwork = []string{"cut", "join", "join", "lose packets"}
	ofIPv6    = []string{"lose IPv6", "get IPv6"}
)

// TestRandomSchedules runs four daemons through random faults: none of them panics, two of them hold the address only
// beside a fault of the network, and when all is healed they agree on one leader. The seed is another one each time.
// A failure says how it is played again. What happens in one instant has no fixed order, so that may take several times:
//
//	go test ./internal/daemon -run RandomSchedules -rapid.seed=17 -rapid.checks=200 -count=5
//
// .ci/run plays 200, beside the other tests, and scripts/nightly 20,000.
func TestRandomSchedules(t *testing.T) {
	const ordinary = "40"
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		assert.NoError(t, checks.Value.Set(ordinary))
	}
	if seed := flag.Lookup("rapid.seed").Value; seed.String() == "0" {
		assert.NoError(t, seed.Set(fmt.Sprint(1+rand.Uint32())))
	}
	// A panic beside the loop of a daemon ends this process before rapid can say it.
	fmt.Printf("%s: -rapid.seed=%v\n", t.Name(), flag.Lookup("rapid.seed").Value)
	rapid.Check(t, func(rt *rapid.T) {
		all := clean
		if rapid.Bool().Draw(rt, "network") {
			all = slices.Concat(clean, ofNetwork)
		}
		both := rapid.Bool().Draw(rt, "IPv6 too")
		if both {
			all = slices.Concat(all, ofIPv6)
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.IntRange(0, 600).Draw(rt, ""), rapid.IntRange(0, 3).Draw(rt, ""), rapid.SampledFrom(all).Draw(rt, ""), rapid.IntRange(100, 1000).Draw(rt, "")}
		}), 1, 30).Draw(rt, "schedule")
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = newSchedule(t, both).play(steps) })
		if len(wrong) > 0 {
			rt.Fatal(strings.Join(wrong, "\n"))
		}
	})
}

// schedule is four boards to which things happen.
type schedule struct {
	*fakeLAN
	both    bool          // there is an address of IPv6 too
	running [4]*fakeBoard // nil if it was killed, or stopped

	mu     sync.Mutex
	cut    [4]bool   // from the others
	pulled [4]bool   // its cable is out
	missed [4]bool   // its cable was out at some time since it acquired the address
	heals  time.Time // when boards have sorted out what the network has done last
	thawed time.Time // when a daemon that stood still went on last
	wrong  []string
}

func newSchedule(t *testing.T, both bool) *schedule {
	s := &schedule{fakeLAN: newFakeLAN(t), both: both}
	for n := range s.running {
		s.start(n)
	}
	pass(2 * time.Second)
	return s
}

func (s *schedule) failed(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf("%v: ", time.Since(s.fakeLAN.start))+fmt.Sprintf(format, values...))
}

func (s *schedule) start(n int) {
	if s.running[n] == nil {
		s.mu.Lock()
		s.pulled[n], s.missed[n] = false, false
		s.mu.Unlock()
		s.running[n] = s.board(n+1, func(c *config.Config, b *fakeBoard) {
			if s.both {
				withBoth(c, b)
			}
			withSwitch(b)
			c.Several = n%2 == 0
			b.onAcquire = func() { go s.acquired(n) } // in the same instant, and without the lock of the board
		})
	}
}

// end waits for the end of a board that was told to end.
func (s *schedule) end(n int) {
	if err := <-s.running[n].ended; err != nil {
		s.failed("board %d: %v", n+1, err)
	}
	s.setCut(n, false)
	s.running[n] = nil
}

// sortedOut is how long two boards that hear each other may both hold the address after one of them stood still: if a
// leader has handed over to it meanwhile, it acts on that RESIGN when it goes on, also if another board has taken over since.
const sortedOut = 10 * time.Millisecond

// pull pulls the cable of a board, or puts it in.
func (s *schedule) pull(n int, out bool) {
	s.mu.Lock()
	s.pulled[n], s.missed[n] = out, out || s.missed[n]
	s.mu.Unlock()
	s.running[n].unplugged(out)
}

// acquired is called when a board has acquired the address.
func (s *schedule) acquired(n int) {
	s.mu.Lock()
	s.missed[n] = s.pulled[n]
	s.mu.Unlock()
	s.checkHolders()
}

// checkHolders wants one holder at most.
func (s *schedule) checkHolders() {
	s.mu.Lock()
	thawed := time.Since(s.thawed) < sortedOut
	s.mu.Unlock()
	if thawed {
		<-time.After(sortedOut)
	}
	for family, holders := range map[string][]int{"IPv4": s.holders(), "IPv6": s.holders6()} {
		s.mu.Lock()
		holders = slices.DeleteFunc(holders, func(number int) bool { return s.missed[number-1] })
		allowed := slices.Contains(s.cut[:], true) || time.Now().Before(s.heals)
		s.mu.Unlock()
		if len(holders) > 1 && !allowed {
			s.failed("boards %v hold the %s address", holders, family)
		}
	}
}

// setCut cuts a running board off, or ends that.
func (s *schedule) setCut(n int, cut bool) {
	if b := s.running[n]; b != nil {
		b.get(func() { b.mute, b.deaf = cut, cut })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut[n] && !cut {
		s.heals = time.Now().Add(time.Second)
	}
	s.cut[n] = cut
}

func (b *fakeBoard) unplugged(so bool) { b.change(func(s *netio.Snapshot) { s.Link.Up = !so }) }

func (b *fakeBoard) ownAddress(addr byte) {
	b.change(func(s *netio.Snapshot) {
		s.Link.Addrs = slices.DeleteFunc(slices.Clone(s.Link.Addrs), func(p netip.Prefix) bool { return p.Addr().Is4() })
		if addr != 0 {
			s.Link.Addrs = slices.Insert(s.Link.Addrs, 0, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, addr}), 24))
		}
	})
}

func (s *schedule) do(e step) {
	b, length := s.running[e.Board], time.Duration(e.For)*time.Millisecond
	if e.Do == "start" {
		s.start(e.Board)
		return
	}
	if b == nil {
		return
	}
	switch e.Do {
	case "unplug", "plug":
		s.pull(e.Board, e.Do == "unplug")
	case "lose address":
		b.ownAddress(0)
	case "get address":
		b.ownAddress(byte(e.Board + 1))
	case "get another address":
		b.ownAddress(byte(e.Board + 11))
	case "lose IPv6", "get IPv6":
		b.get(func() { b.noIPv6 = e.Do == "lose IPv6"; b.holding6 = b.holding6 && !b.noIPv6 })
	case "freeze":
		go b.tasks.post(func() {
			<-time.After(length)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.thawed = time.Now()
		})
	case "kill":
		b.Kill()
		s.end(e.Board)
	case "stop":
		b.end()
		s.end(e.Board)
	case "drain":
		go b.Drain(context.Background(), console.DrainRequest{})
	case "undrain":
		go b.Undrain(context.Background())
	case "pause":
		go b.Pause(context.Background(), console.PauseRequest{ForNs: int64(time.Minute)})
	case "unpause":
		go b.Unpause(context.Background())
	case "resign":
		go b.Resign(context.Background())
	case "reload":
		b.reload(func(c *config.Config) { c.Priority, c.Preempt = uint8(e.For%3*50), e.For%2 == 0 })
	case "cut":
		s.setCut(e.Board, true)
	case "join":
		s.setCut(e.Board, false)
	case "lose packets":
		s.setCut(e.Board, true)
		<-time.After(length / 10)
		s.setCut(e.Board, false)
	}
}

// play lets the schedule happen, heals what it has done, and returns what was wrong.
func (s *schedule) play(steps []step) []string {
	for _, e := range steps {
		pass(time.Duration(e.After) * time.Millisecond)
		s.do(e)
	}
	pass(time.Second) // nothing is frozen any more
	for n := range s.running {
		s.start(n)
		for _, heal := range []string{"join", "plug", "get address", "get IPv6", "undrain", "unpause"} {
			s.do(step{Board: n, Do: heal})
		}
		s.do(step{Board: n, Do: "reload", For: 2 + 3*n%2})
	}
	pass(30 * time.Second)
	s.checkAgreement()
	for n, b := range s.running {
		b.Kill()
		s.end(n)
	}
	if len(s.wrong) > 0 {
		s.wrong = append(s.wrong, s.story...)
	}
	return s.wrong
}

// checkAgreement wants all boards to follow the one that holds the address.
func (s *schedule) checkAgreement() {
	var views []string
	for _, b := range s.running {
		status, err := b.Status(context.Background())
		if err != nil {
			s.failed("board %d: %v", b.number, err)
		}
		views = append(views, fmt.Sprintf("board %d is the %s and follows %s", b.number, status.Role, status.LeaderName))
		if holders := s.holders(); len(holders) != 1 || status.LeaderName != fmt.Sprint("pi", holders[0]) {
			s.failed("boards %v hold the address, and board %d follows %q", holders, b.number, status.LeaderName)
		}
	}
	if holders, holders6 := s.holders(), s.holders6(); s.both && !slices.Equal(holders, holders6) {
		s.failed("boards %v hold the IPv4 address, and boards %v that of IPv6", holders, holders6)
	}
	if len(s.wrong) > 0 {
		s.failed("%s", strings.Join(views, "\n"))
	}
}
