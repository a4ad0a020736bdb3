package page

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

const (
	// windows is how many show the page at the same time. A browser has six connections to a host.
	windows = 8
	// rightAgain is how long after the death of the board that has answered them the pages may show what
	// was. A page asks every 0.5 s, and gives a request up after 0.7 s: a takeover has mostly ended before
	// the next question, and 0.7 s later anyway.
	rightAgain = 1500 * time.Millisecond
	// forgotten is how long after that a connection to the dead board may be left.
	forgotten = 3 * time.Second
)

// shown is what a page says: who has the address, and of which board the light and the mark are.
const shown = `() => {
	const leads = [...document.querySelectorAll('#boards [data-leads]')];
	const lit = [...document.querySelectorAll('#boards .light[data-pattern=leader]')].map((l) => l.closest('li'));
	const names = (cards) => cards.map((c) => c.querySelector('h3').textContent).join('+');
	return [document.getElementById('hero-name').textContent, names(leads), names(lit)].join(' ');
}`

// The leader's cable is pulled while windows show the page that it serves at the floating address.
// They show the board that has taken over, soon, and no connection to the dead one is left. When
// the cable is plugged in again, they show that as well.
func testTakeover(t *testing.T, s *stage) {
	all, _ := s.boards(t)
	var tabs []*tab
	for range windows {
		tabs = append(tabs, s.openLossy(t, pageAddress(cluster.Address.String())))
	}
	leader := s.agreed(t, all)
	for _, b := range tabs {
		leader = s.shows(t, b, all, leaderAnswers)
		b.run("watch.follow(" + shown + ")")
		if state := value[string](b, "document.visibilityState"); state != "visible" {
			t.Errorf("a window is %s", state)
		}
	}
	tabs[0].keepsRules(t, laptop)

	before := s.connections(t)
	if len(before) == 0 {
		t.Error("no page has a connection to the leader")
	}
	pulled := time.Now()
	must(t, leader.Pull())
	var took []time.Duration
	for _, b := range tabs {
		took = append(took, b.movesFrom(leader, pulled))
	}
	slices.Sort(took)
	t.Logf("the pages were right %v to %v after the cable was pulled, half of them after %v", took[0], took[len(took)-1], took[len(took)/2])
	if worst := took[len(took)-1]; worst > rightAgain {
		t.Errorf("a page was right after %v, and it may take %v", worst, rightAgain)
	}
	others := slices.DeleteFunc(slices.Clone(all), func(b *board) bool { return b == leader })
	s.shows(t, tabs[0], others, leaderAnswers)
	tabs[0].keepsRules(t, laptop)

	time.Sleep(time.Until(pulled.Add(forgotten)))
	for port, state := range s.connections(t) {
		if old := before[port]; old != "" && state != finished {
			t.Errorf("%v after the board has died, a connection to it is left: port %s, %s", forgotten, port, state)
		}
	}

	must(t, leader.Plug())
	s.shows(t, tabs[0], all, leaderAnswers)
	tabs[0].until("document.querySelectorAll('#boards [data-lost]').length === 0")
}

// leaderAnswers are the words of a page at the floating address.
func leaderAnswers(leader *board) []string {
	return []string{leader.String() + " answers", "is held by " + leader.String()}
}

// shows waits until the page says what words are, of the leader that the boards follow. On a busy machine
// that may change meanwhile.
func (s *stage) shows(t *testing.T, b *tab, boards []*board, words func(leader *board) []string) (leader *board) {
	t.Helper()
	var missing []string
	for range 4 {
		leader = s.agreed(t, boards)
		if missing = b.says(words(leader)...); len(missing) == 0 {
			return leader
		}
	}
	t.Fatalf("the page does not say %q; it says\n%s", missing, b.text())
	return nil
}

// movesFrom waits until the page says that another board has the address, and has the light and
// the mark of a leader. It returns how long after an instant that was.
func (b *tab) movesFrom(old *board, after time.Time) time.Duration {
	b.t.Helper()
	find := fmt.Sprintf(`watch.states.find(({ at, state }) => {
		const [who, marked, lit] = state.split(' ');
		return at > %d && who !== %q && /^pi\d$/.test(who) && who === marked && marked === lit;
	})`, after.UnixMilli(), old)
	b.until(find)
	at := value[float64](b, find+".at")
	return time.UnixMicro(int64(at * 1000)).Sub(after).Round(time.Millisecond)
}

// The daemon of the page's own board is killed. The page says in words that there is none, and is
// right again when there is one.
func testDaemonKilled(t *testing.T, s *stage) {
	all, leader := s.boards(t)
	own := all[slices.IndexFunc(all, func(b *board) bool { return b != leader })]
	ownAnswers := func(leader *board) []string {
		return []string{own.String() + " answers", "is held by " + leader.String()}
	}
	b := s.openLossy(t, own.address())
	s.shows(t, b, all, ownAnswers)
	must(t, own.Signal(syscall.SIGKILL))
	b.reads("no daemon", "systemctl")
	b.keepsRules(t, phone, laptop.dark())
	must(t, own.Run())
	s.shows(t, b, all, ownAnswers)
}

// finished are connections that need nobody any more: the kernel waits for late packets.
const finished = "finished"

// connections are those of the client to the page at the floating address: its port, and the state.
func (s *stage) connections(t *testing.T) map[string]string {
	t.Helper()
	text, err := netns.Within(s.LAN.Client(), func() ([]byte, error) { return os.ReadFile("/proc/thread-self/net/tcp") })
	must(t, err)
	octets := cluster.Address.As4()
	peer := fmt.Sprintf("%02X%02X%02X%02X:%04X", octets[3], octets[2], octets[1], octets[0], 9254)
	states := map[string]string{"01": "ESTABLISHED", "02": "SYN_SENT"}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // number, local address, peer, state, … (proc_net_tcp(5))
		if len(fields) < 4 || fields[2] != peer {
			continue
		}
		state := states[fields[3]]
		if state == "" {
			state = finished
		}
		found[fields[1]] = state
	}
	return found
}
