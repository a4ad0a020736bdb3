package page

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/web"
)

// states are how a group may be, as changes to the status of docs/status.md, where pi3 leads, pi2
// is next, and pi1 answers; and words that people must find then.
var states = []struct {
	name   string
	change func(*console.Status)
	words  []string
}{
	{"all is well", func(*console.Status) {}, []string{"192.168.1.250 is held by", "pi3", "leader", "heir", "108 ms"}},
	{"a takeover", func(s *console.Status) {
		s.Role, s.Reason, s.ReasonText = "candidate", "leader_silent", "the leader fell silent"
		s.Boards[0].Stale, s.Boards[0].HeardMs = true, new(1200.0)
		s.Boards[2].Role = "candidate"
	}, []string{"was last held by", "silent", "last heard"}},
	{"another board has taken over", takeOver, []string{"pi2", "silent", "104 ms"}},
	{"no fit board could take over", func(s *console.Status) { s.Spares = new(0) }, []string{"is held by", "pi3", "no fit board could take over"}},
	{"this board leads", lead, []string{"pi1", "this board sends one every 100 ms", "lifetime"}},
	{"this board has no link", func(s *console.Status) {
		s.Role, s.Reason, s.ReasonText = "isolated", "link_lost", "the link was lost"
		s.Leader, s.LeaderName, s.HeldBy, s.LeaderSinceMs, s.Heir, s.HeirName = "", "", "", nil, "", ""
	}, []string{"unknown", "no link"}},
	{"two claim the address", func(s *console.Status) { s.Boards[1].Role = "leader" }, []string{"claimed by", "pi3", "pi2"}},
	{"problems", func(s *console.Status) {
		s.Problems = []console.Problem{
			{Kind: "no_light", Text: "The LED ACT cannot be used: another program has it. Stop that program, or set led = \"none\"."},
			{Kind: "bad_tag", Board: "192.168.1.66", Text: "Packets from 192.168.1.66 were made with another key. Copy the key of this board to that one."},
		}
	}, []string{"Needs attention", "another key", "The LED ACT"}},
	{"failing checks", fail, []string{"DNS pi.hole @127.0.0.1", "did not answer within 1 s", "a check fails"}},
	{"paused", func(s *console.Status) {
		s.Paused, s.PauseLeader, s.PauseLeftNs = true, s.Leader, int64(50*time.Minute+30*time.Second)
	}, []string{"paused", "pi3", "50 min"}},
	{"drained", func(s *console.Status) {
		s.Drained, s.DrainLeftNs = true, int64(10*time.Minute+30*time.Second)
		s.Grade, s.GradeText = "drained", "somebody has drained it"
		s.Boards[2].Grade, s.Boards[2].GradeText = s.Grade, s.GradeText
	}, []string{"drained", "10 min"}},
	{"strict, without a majority", func(s *console.Status) {
		s.Algorithm, s.MajorityUnheard = "strict", true
		s.Role, s.Reason, s.ReasonText = "candidate", "leader_silent", "the leader fell silent"
		s.Leader, s.LeaderName, s.HeldBy, s.LeaderSinceMs, s.Heir, s.HeirName = "", "", "", nil, "", ""
		for _, b := range s.Boards {
			s.Voters = append(s.Voters, console.Voter{ID: b.ID, Name: b.Name, Unheard: !b.Self})
		}
		for i := range 2 {
			s.Boards[i].Stale = true
		}
	}, []string{"1 of the 3 voters", "missing", "not heard"}},
	{"a second path", func(s *console.Status) {
		s.SecondPath = &console.SecondPath{Interface: "wlan0", Address: "192.168.1.21", State: console.SecondPathWorks}
	}, []string{"second path", "wlan0 192.168.1.21, works"}},
	{"a second path that does not work", func(s *console.Status) {
		s.SecondPath = &console.SecondPath{Interface: "wlan0", State: console.SecondPathWaits, Text: "The interface wlan0 has no IPv4 address (yet)."}
		s.Problems = []console.Problem{{Kind: console.ProblemSecondPath, Text: s.SecondPath.Text}}
	}, []string{"Needs attention", "second path", "no IPv4 address"}},
	{"ten boards with long names", func(s *console.Status) {
		for n := 4; n <= 10; n++ {
			b := s.Boards[1]
			b.Role, b.ID, b.Name = "follower", fmt.Sprintf("192.168.1.%d", 10+n), fmt.Sprintf("raspberrypi-in-the-attic-number-%d", n)
			b.Address = b.ID
			s.Boards = append(s.Boards, b)
		}
		s.Boards[0].Name, s.LeaderName = "the-board-with-the-very-long-name-behind-the-washing-machine", "the-board-with-the-very-long-name-behind-the-washing-machine"
		s.Addresses = []string{"192.168.1.250/24", "192.168.1.251/24", "192.168.1.252/24", "192.168.1.253/24"}
	}, []string{"washing-machine", "number-10"}},
	{"addresses of both families", func(s *console.Status) {
		s.Addresses = append(s.Addresses, "fd12:3456:789a:bcde:f012:3456:789a:bcde/64", "2001:db8:1234:5678:9abc:def0:1234:5678/128")
	}, []string{"192.168.1.250, fd12:3456:789a:bcde:f012:3456:789a:bcde and 2001:db8:1234:5678:9abc:def0:1234:5678 are held by", "pi3"}},
	{"an address could not be added", func(s *console.Status) {
		lead(s)
		s.Addresses = append(s.Addresses, "fd12:3456:789a:bcde:f012:3456:789a:bcde/64")
		s.Problems = []console.Problem{{Kind: console.ProblemAddressNotHeld, Text: "Add the address fd12:3456:789a:bcde:f012:3456:789a:bcde to topdog0: IPv6 is switched off there."}}
	}, []string{"some of 192.168.1.250 and fd12:3456:789a:bcde:f012:3456:789a:bcde are held by", "pi1"}},
	{"the leader has one address of two", func(s *console.Status) {
		s.Addresses = append(s.Addresses, "fd00:1::250/64")
		s.HeldBy, s.Boards[0].Floating = "", []string{"192.168.1.250"}
	}, []string{"192.168.1.250 and fd00:1::250 are held together by", "nobody", "pi3 leads, and its configuration has 192.168.1.250"}},
	{"boards that are gone", func(s *console.Status) {
		s.Boards[1].Gone, s.Boards[1].HeardMs = true, new(5400_000.0)
		s.Heir, s.HeirName = s.Board.ID, s.Board.Name
	}, []string{"gone", "1 h 30 min ago"}},
	{"alone, just started", func(s *console.Status) {
		s.Role, s.Reason, s.ReasonText, s.RoleSinceMs = "listener", "started", "the daemon started", new(200.0)
		s.Leader, s.LeaderName, s.HeldBy, s.LeaderSinceMs, s.Heir, s.HeirName = "", "", "", nil, "", ""
		s.Boards, s.Changes = s.Boards[2:], []console.Change{}
		s.Boards[0].Role = "listener"
		s.Term = 0
	}, []string{"listening", "none"}},
}

// takeOver has pi2 take over from pi3, and pi1 be next.
func takeOver(s *console.Status) {
	second := &s.Boards[1]
	s.Leader, s.LeaderName, s.HeldBy = second.ID, second.Name, second.ID
	s.Heir, s.HeirName = s.Board.ID, s.Board.Name
	s.LeaderSinceMs = new(5300.0)
	s.Term++
	s.Boards[0].Stale, s.Boards[0].HeardMs = true, new(5400.0)
	second.Role, second.Following, second.HeardMs = "leader", "", new(40.0)
	s.Boards[2].Role, s.Boards[2].Following = "heir", second.ID
	s.Changes = append([]console.Change{{
		AgoMs: 5300, OutageMs: new(104.0),
		Lead: console.Lead{Leader: second.ID, LeaderName: second.Name, Term: s.Term, Reason: "nobody_answered", ReasonText: "nobody answered for the leader"},
	}}, s.Changes...)
}

// fail has a check of this board fail.
func fail(s *console.Status) {
	s.Grade, s.GradeText = "failing", "a check fails"
	s.Boards[2].Grade, s.Boards[2].GradeText = s.Grade, s.GradeText
	s.Checks = []console.Check{
		{Kind: "dns", Target: "pi.hole @127.0.0.1", When: "always", State: "failing", SinceNs: int64(90 * time.Second), NameText: "DNS pi.hole @127.0.0.1", Text: "the name server on 127.0.0.1 did not answer within 1 s"},
		{Kind: "gateway", When: "always", State: "passing", SinceNs: int64(time.Hour), NameText: "the gateway"},
	}
	s.Problems = []console.Problem{{Kind: "checks", Text: "DNS pi.hole @127.0.0.1 fails: the name server on 127.0.0.1 did not answer within 1 s"}}
}

// lead makes the board that answers the leader.
func lead(s *console.Status) {
	s.Role, s.Reason, s.ReasonText = "leader", "nobody_answered", "nobody answered for the leader"
	s.Leader, s.LeaderName, s.HeldBy, s.Holding = s.Board.ID, s.Board.Name, s.Board.ID, true
	s.HoldMethod, s.HoldText = "lifetime", "lifetime on eth0, which the kernel ends"
	s.LEDPattern, s.LEDText = "leader", "ACT, lit, with a short gap every second"
	s.LeaderSinceMs, s.RoleSinceMs = new(700.0), new(700.0)
	s.Term++
	s.Boards[0].Stale, s.Boards[0].HeardMs = true, new(800.0)
	s.Boards[1].Following = s.Board.ID
	s.Boards[2].Role, s.Board.Role = "leader", "leader"
	s.Changes = append([]console.Change{{
		AgoMs: 700, OutageMs: new(108.0),
		Lead: console.Lead{Leader: s.Board.ID, LeaderName: s.Board.Name, Term: s.Term, Reason: s.Reason, ReasonText: s.ReasonText},
	}}, s.Changes...)
}

// The page says in words how the group is, and keeps the rules in each state.
func testStates(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	b := s.open(t, f.address)
	for _, state := range states {
		status := documented(t)
		state.change(&status)
		f.set(status, nil)
		t.Run(state.name, func(t *testing.T) {
			if missing := b.says(state.words...); len(missing) > 0 {
				t.Errorf("the page does not say %q; it says\n%s", missing, b.text())
			}
			b.keepsRules(t, narrow, phone.dark(), laptop)
		})
	}
}

// The page keeps all rules at all widths, with the mouse and with the keyboard.
func testLooks(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	b := s.open(t, f.address)
	b.reads("is held by pi3")
	b.keepsRules(t, allLooks...)
	b.keepsKeyboardRules(t, laptop)
	b.keepsKeyboardRules(t, phone.dark())
	b.lookAs(laptop)
	b.isCalm(t, 2200*time.Millisecond) // four answers
}

// Where no daemon runs, the page says so in words, and is right again when one does.
func testNoDaemon(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	gone := &web.Error{Code: http.StatusServiceUnavailable, Message: "no daemon runs here", Hint: "start it: systemctl start topdog"}
	f.set(console.Status{}, gone)
	b := s.openLossy(t, f.address)
	b.reads(gone.Hint)
	b.keepsRules(t, phone, laptop.dark())
	f.set(documented(t), nil)
	b.reads("is held by pi3")
	f.set(console.Status{}, gone)
	b.reads(gone.Hint)
	b.keepsRules(t, phone, laptop.dark())
	f.set(documented(t), nil)
	b.until("!document.body.innerText.includes('" + gone.Hint + "')")
}

// An answer of which the page can make nothing is asked for again, and not taken for what has not changed.
func testGarbledAnswer(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	f.garble()
	b := s.open(t, f.address)
	b.reads("is held by pi3")
}
