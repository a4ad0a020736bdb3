package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// testDemo pulls the plug of the leader on the page, and sees what follows: the lead moves, and the page
// says for how long nobody answered.
func testDemo(t *testing.T, s *stage) {
	b := s.open(t, s.serve(t, "demo", "--page"))
	b.reads("LEADER", "heir", "you may pull plugs")
	if value[string](b, "location.href") != b.origin+"/" {
		t.Error("a projector shows the token in the address bar")
	}
	b.lookAs(laptop)
	b.until("document.querySelectorAll('.seen').length === 5 * 4") // each sees the others
	old := b.leads()
	b.lit(old)
	b.press(old + ": pull the power plug")
	b.until(`document.querySelector('.board[data-daemon="off"]') && document.querySelector('.board[data-leads="true"]')`)
	b.lit(b.leads())
	b.until(`getComputedStyle(document.querySelector('.board[data-daemon="off"] .draw[data-in="false"] .moves')).transform !== 'none'`) // the plug is drawn pulled
	b.until(`document.querySelector('#done .ms.bad') && /ms/.test(document.querySelector('#number').textContent)`)
	b.until(`document.querySelectorAll('#diagram .message').length > 3 && document.querySelectorAll('#steps tr').length > 5`)
	b.reads("no power", "cut the power of", "measured elsewhere", "nobody answered", old+" → "+b.leads())
	t.Logf("%s was without power, and the page says: %s", old, value[string](b, "document.getElementById('number').textContent"))
	if *pictures != "" {
		time.Sleep(1500 * time.Millisecond) // so that the outage is in the middle of the strip
	}
	b.picture(t, "demo/wide.png", laptop)
	b.keepsRules(t, narrow, phone, laptop, laptop.dark(), projector.dark())
	if controls := b.keepsKeyboardRules(t, laptop.quiet()); controls < 5*2 {
		t.Errorf("the keyboard reaches %d controls", controls)
	}
	b.lookAs(laptop)
	b.do(chromedp.Click(chromedp.CSS("#all-on")))
	b.until(`document.querySelectorAll('.board[data-daemon="running"]').length === 5`)
}

// testDemoNetns does the same with boards in network namespaces, where the page is served by a process without
// privileges that only passes on what is done.
func testDemoNetns(t *testing.T, s *stage) {
	b := s.open(t, s.serve(t, "demo", "--page", "--netns"))
	b.reads("LEADER", "heir", "you may pull plugs")
	b.lookAs(laptop)
	old := b.leads()
	b.lit(old)
	b.press(old + ": pull the network cable")
	b.until(fmt.Sprintf(`document.querySelector('.board[data-leads="true"] h3')?.textContent.match(/^(?!%s$)/)`, old))
	b.lit(b.leads())
	b.until(`getComputedStyle(document.querySelector('.draw.cable[data-in="false"] .moves')).transform !== 'none'`)
	b.reads("pulled the cable of " + old)
	b.press(old + ": put the network cable back")
	b.until(`document.querySelectorAll('.board[data-daemon="running"]').length === 5`)
}

// testDemoReturn has the highest board go and come back, where the highest leads: it takes the lead because it came back, and
// the page says so.
func testDemoReturn(t *testing.T, s *stage) {
	b := s.open(t, s.serve(t, "demo", "--page", "--algorithm", "bully"))
	b.reads("LEADER")
	b.lookAs(laptop)
	b.until(`document.querySelectorAll('.board[data-daemon="running"]').length === 5 && document.querySelector('.board:last-child[data-leads="true"]')`)
	highest := b.leads()
	b.press(highest + ": pull the power plug")
	b.until(`document.querySelector('.board:not(:last-child)[data-leads="true"]') && document.querySelector('#diagram .cut') && !document.querySelector('#diagram .back')`)
	b.press(highest + ": plug the power in")
	b.until(`document.querySelector('.board:last-child[data-leads="true"]') && document.querySelector('#diagram .back') && !document.querySelector('#diagram .cut')`)
	b.until(marked("power on"))
	b.reads("the first step of " + highest)

	b.press(highest + ": pull the power plug")
	b.until(`document.querySelector('.board:not(:last-child)[data-leads="true"]')`)
	b.do(chromedp.Click(chromedp.CSS("#all-on")))
	b.until(`document.querySelector('.board:last-child[data-leads="true"]')`)
	b.until(`(([what, ms]) => what.textContent.includes('switched all boards on') && /ms/.test(ms.textContent)
		&& document.querySelector('#number').textContent === ms.textContent)(document.querySelector('#done li').children)`)
}

// testDemoMarks looks at what the diagram and the figures say: what was done is never left out, an old leader that leads on is
// drawn so, nothing is too small to read, and only a takeover stands beside those of others.
func testDemoMarks(t *testing.T, s *stage) {
	b := s.open(t, s.serve(t, "demo", "--page"))
	b.reads("LEADER", "heir")
	b.lookAs(laptop)
	allOn := func() {
		b.do(chromedp.Click(chromedp.CSS("#all-on")))
		b.until(`document.querySelectorAll('.board[data-daemon="running"]').length === 5`)
		b.until(`document.querySelectorAll('.seen[data-as="silent"], .seen[data-as="gone"], .seen[data-as="unknown"]').length === 0`)
	}
	b.until("document.querySelectorAll('.seen').length === 5 * 4") // each sees the others
	// A board that is kept from its processor hands over, and a hand-over that comes before or after what is done here is another
	// takeover: then there is nothing to look at, and it is done again.
	const soonMs, attempts = 3000, 5
	untilShown := func(do func(), shown string) {
		t.Helper()
		for range attempts {
			do()
			b.run("window.doneAt = performance.now()")
			b.until(fmt.Sprintf("(%s) || performance.now() > doneAt + %d", shown, soonMs))
			if value[bool](b, "!!("+shown+")") {
				return
			}
			allOn()
		}
		t.Fatalf("done %d times, and the page never shows %s; it says:\n%s", attempts, shown, b.text())
	}
	untilShown(func() { b.press("Kill " + b.leads()) }, marked("kill")+` && document.querySelector('.figures-of[data-now="true"]')`)
	b.reads("the longest of keepalived took")
	b.lookAs(phone)
	if scale := value[float64](b, `(() => { const it = document.querySelector('#diagram svg'); return it.getBoundingClientRect().width / it.viewBox.baseVal.width })()`); scale < 0.79 {
		t.Errorf("on a phone the diagram is drawn at %.0f %%, and cannot be read", 100*scale)
	}
	b.lookAs(laptop)

	allOn()
	untilShown(func() { b.do(chromedp.Click(chromedp.CSS("#split"))) }, marked("split")+
		` && [...document.querySelectorAll('#diagram .leads')].filter((it) => it.y2.baseVal.value === it.ownerSVGElement.viewBox.baseVal.height).length === 2`)

	allOn()
	for _, name := range value[[]string](b, `[...document.querySelectorAll('.board h3')].map((it) => it.textContent)`) {
		b.press(name + ": pull the power plug")
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.board')].some((it) => it.querySelector('h3').textContent === %q && it.dataset.daemon !== 'running')`, name))
	}
	b.reads("nobody answers", "and counting")
	b.do(chromedp.Click(chromedp.CSS("#all-on")))
	b.until(`document.querySelector('.board[data-leads="true"]') && document.querySelector('#answer[data-tone="good"]')`)
	b.until(`document.querySelector('#number').textContent === document.querySelector('#done .ms.bad').textContent`)
	if value[bool](b, `document.querySelector('.figures-of[data-now="true"]') !== null`) {
		t.Error("an outage that somebody has ended stands beside takeovers of keepalived")
	}
}

// marked is whether the diagram has a word.
func marked(word string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#diagram text')].some((it) => it.textContent === %q)`, word)
}

// testDemoActions does to a board all that can be done to it, and undoes it; and then to the LAN.
func testDemoActions(t *testing.T, s *stage) {
	b := s.open(t, s.serve(t, "demo", "--page"))
	b.reads("LEADER", "heir")
	b.lookAs(laptop)
	board := value[string](b, `[...document.querySelectorAll('.board:not([data-leads="true"]) h3')].at(-1).textContent`)
	for _, step := range []struct{ press, shows string }{
		{board + ": pull the network cable", "isolated"}, {board + ": put the network cable back", ""},
		{"Kill " + board, "killed"}, {"Start " + board, ""},
		{"Stop " + board, "stopped"}, {"Start " + board, ""},
		{"Freeze " + board, "frozen"}, {"Thaw " + board, ""},
		{"Mute " + board, "mute"}, {"Mute " + board, ""},
		{"Deaf " + board, "deaf"}, {"Deaf " + board, ""},
	} {
		b.press(step.press)
		b.until(fmt.Sprintf(`(() => {
			const board = [...document.querySelectorAll('.board')].find((e) => e.querySelector('h3').textContent === %q);
			const role = board.querySelector('.role').textContent;
			return %[2]q ? role.includes(%[2]q) : ['follower', 'heir', 'LEADER'].includes(role);
		})()`, board, step.shows))
	}
	leader := b.leads()
	b.press("Resign " + leader)
	b.until(fmt.Sprintf(`document.querySelector('.board[data-leads="true"] h3')?.textContent.match(/^(?!%s$)/)`, leader))
	b.do(chromedp.Click(chromedp.CSS("#split")))
	b.until(`document.querySelectorAll('.board[data-leads="true"]').length === 2`)
	b.do(chromedp.Click(chromedp.CSS("#heal")))
	b.until(`document.querySelectorAll('.board[data-leads="true"]').length === 1`)
}

// testDemoSpectator has not the token, or a wrong one, and may look.
func testDemoSpectator(t *testing.T, s *stage) {
	address, _, found := strings.Cut(s.serve(t, "demo", "--page"), "#")
	if !found {
		t.Fatal("the printed URL has no token")
	}
	b := s.open(t, address)
	b.reads("LEADER", "you may look")
	if n := value[int](b, `document.querySelectorAll('#boards button:not(:disabled), .tools button:not(:disabled)').length`); n != 0 {
		t.Errorf("a spectator has %d buttons", n)
	}
	b.keepsRules(t, phone.dark(), laptop)

	forger := s.open(t, address+"#token=wrong")
	forger.reads("LEADER", "you may pull plugs")
	forger.expectLoss() // it will be refused
	leader := forger.leads()
	forger.press(leader + ": pull the power plug")
	forger.reads("you may look")
	if now := forger.leads(); now != leader {
		t.Errorf("%s led, and with a wrong token %s does", leader, now)
	}
}

// leads is the name of the board that leads.
func (b *tab) leads() string {
	b.t.Helper()
	b.until(`document.querySelector('.board[data-leads="true"]')`)
	return value[string](b, `document.querySelector('.board[data-leads="true"] h3').textContent`)
}

// lit waits until the light of a board that leads is lit, and that of no other one: followers flash in turn.
func (b *tab) lit(leader string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(() => {
		const lit = [...document.querySelectorAll('.board:has(.light[data-lit="true"]) h3')];
		return lit.length === 1 && lit[0].textContent === %q;
	})()`, leader))
}

// press presses the button of a name.
func (b *tab) press(name string) {
	b.t.Helper()
	button := fmt.Sprintf("button[aria-label=%q]", name)
	b.until(fmt.Sprintf("document.querySelector(%q + ':enabled')", button))
	// A click at a place may miss what has just moved.
	b.do(chromedp.WaitVisible(chromedp.CSS(button)))
	value[bool](b, fmt.Sprintf("(document.querySelector(%q).click(), true)", button))
}
