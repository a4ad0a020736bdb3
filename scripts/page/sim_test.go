package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// simRun is what the server says of a run, as far as the page is compared with it.
type simRun struct {
	Report struct {
		Messages []struct {
			Kind    string `json:"kind"`
			Routine bool   `json:"routine"`
			Live    int    `json:"live"`
			Dead    int    `json:"dead"`
		} `json:"messages"`
	} `json:"report"`
}

// The simulator's page: an algorithm is chosen, the run is watched step by step, and the messages that
// the page has counted at its end are those that the server has counted.
func testSim(t *testing.T, s *stage) {
	b := s.open(t, s.serve(t, "sim", "--page", "127.0.0.1:0"))
	b.until("!document.getElementById('main').hidden")
	b.choose("failure", "crash_leader")
	b.choose("algorithm", "bully")
	b.choose("boards", "5")
	b.until("document.getElementById('command').textContent.includes('bully')")
	b.keepsRules(t, allLooks...)
	b.keepsKeyboardRules(t, laptop)

	at := b.step()
	for n := range 5 {
		b.do(chromedp.Click(chromedp.CSS("#next")))
		b.until(fmt.Sprintf("document.getElementById('now-step').textContent.startsWith('Step %d ')", at+n+1))
	}
	b.do(chromedp.Click(chromedp.CSS("#back")))
	b.until(fmt.Sprintf("document.getElementById('now-step').textContent.startsWith('Step %d ')", at+4))
	b.do(chromedp.Click(chromedp.CSS("#play")))
	b.until(fmt.Sprintf("document.getElementById('now-step').textContent.startsWith('Step %d ')", at+6))
	b.do(chromedp.Click(chromedp.CSS("#play")))
	b.do(chromedp.Focus(chromedp.CSS("#next")), chromedp.KeyEvent(kb.End))
	b.until("document.getElementById('next').matches(':disabled') || /^Step (\\d+) of \\1$/.test(document.getElementById('now-step').textContent)")

	run := value[simRun](b, `fetch(performance.getEntriesByType('resource').findLast((e) => e.name.includes('/v1/sim/run')).name).then((r) => r.json())`)
	sum := 0
	for _, m := range run.Report.Messages {
		if !m.Routine {
			sum += m.Live + m.Dead
		}
	}
	counted := value[[]int](b, `[...document.querySelectorAll('#sum td')].slice(0, 2).map((td) => Number(td.textContent))`)
	if sum == 0 || len(counted) != 2 || counted[0] != sum || counted[1] != sum {
		t.Errorf("the page has counted %d messages (so far, in all) at the end of the run, and the server %d", counted, sum)
	}
	b.keepsRules(t, phone, laptop.dark())
	b.picture(t, "sim/wide.png", laptop)

	b.lookAs(laptop)
	b.choose("failure", "partition")
	b.choose("algorithm", "strict")
	b.choose("boards", "10")
	b.until("document.getElementById('scroll').scrollWidth > 5 * document.getElementById('scroll').clientWidth")
	b.do(chromedp.Click(chromedp.CSS("#last")))
	if left := value[float64](b, "(({ scrollLeft, clientWidth, scrollWidth }) => (scrollWidth - scrollLeft - clientWidth) / clientWidth)(document.getElementById('scroll'))"); left > 1 {
		t.Errorf("at its last step the diagram shows what is %.0f screens before the end", left)
	}
}

// An address may name anything. The page says what there is not, and goes on.
func testSimAddress(t *testing.T, s *stage) {
	origin := strings.TrimSuffix(s.serve(t, "sim", "--page", "127.0.0.1:0"), "/")
	b := s.open(t, origin+"/")
	b.until("!document.getElementById('main').hidden")
	b.expectLoss() // the server refuses some of it
	for _, test := range []struct{ hash, says string }{
		{"algorithm=bully&boards=300000000&failure=crash_leader", `boards: "300000000" is no such number: use a number from 2 to 20`},
		{"algorithm=bully&boards=9000&failure=crash_leader&notice=3", `boards: "9000" is no such number: use a number from 2 to 20`},
		{"algorithm=bully&boards=-5&failure=crash_leader", `boards: "-5" is no such number: use a number from 2 to 20`},
		{"algorithm=bully&boards=5&failure=crash_leader&notice=5", "Board 5 cannot be the one that notices here"},
		{"algorithm=nobody", "there are: heir, bully"},
		{"algorithm=bully&boards=5&failure=crash_leader&step=99999999999", ""},
	} {
		value[bool](b, fmt.Sprintf("(location.hash = %q, true)", test.hash))
		b.until(fmt.Sprintf("document.getElementById('trouble').textContent.includes(%[1]q) && document.getElementById('trouble').hidden === (%[1]q === '')", test.says))
	}
	b.until("!document.getElementById('main').hidden && /^Step (\\d+) of \\1$/.test(document.getElementById('now-step').textContent)")

	// An answer that comes just after the address was changed. The page must not put back the address of that answer.
	value[bool](b, `(async () => {
		const real = window.fetch;
		let held = 0, release;
		const gate = new Promise((done) => { release = done; });
		window.fetch = async (...request) => {
			const answer = await real(...request), json = await answer.json();
			held++;
			await gate;
			return { ok: answer.ok, status: answer.status, json: async () => json };
		};
		location.hash = 'algorithm=bully&boards=-5&failure=crash_leader';
		while (held === 0) await new Promise((done) => setTimeout(done, 5));
		window.fetch = real;
		location.hash = 'algorithm=minid&boards=6&failure=crash_leader';
		release();
		return true;
	})()`)
	b.until("document.getElementById('trouble').hidden && document.getElementById('algorithm').value === 'minid' && location.hash.includes('boards=6') && /^Step /.test(document.getElementById('now-step').textContent)")
}

// choose chooses a value of a list.
func (b *tab) choose(id, option string) {
	b.t.Helper()
	if got := value[string](b, fmt.Sprintf(`(() => {
		const list = document.getElementById(%q);
		list.value = %q;
		list.dispatchEvent(new Event('change', { bubbles: true }));
		return list.value;
	})()`, id, option)); got != option {
		b.t.Fatalf("the list %s has no %s; it has %q", id, option, value[[]string](b, fmt.Sprintf("[...document.getElementById(%q).options].map((o) => o.value)", id)))
	}
}

// step is the number of the step that the page shows.
func (b *tab) step() int {
	b.t.Helper()
	return value[int](b, "Number(document.getElementById('now-step').textContent.split(' ')[1])")
}
