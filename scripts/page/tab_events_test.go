package page

import (
	"strings"
	"testing"
)

// What tabs report is reported: each script does what no page may do, and has a complaint with some words.
func testTabsCanFail(t *testing.T, s *stage) {
	for _, test := range []struct{ script, words string }{
		{"console.warn('careful')", "console.warning: \"careful\""},
		{"setTimeout(() => { throw new Error('thrown') })", "exception: Uncaught Error: thrown"},
		{"await fetch('http://127.0.0.1:8/').catch(() => 0)", "asks somebody else: http://127.0.0.1:8/"},
		{"await fetch('/missing')", "404"},
		{"watch.begin(); document.querySelector('h2').style.marginTop = '200px'; await until(() => watch.shifts.length)", "jumps"},
		{"watch.begin(); document.getElementById('said').textContent = 'news'; await until(() => watch.said.length)", "told while nothing happens: \"news\""},
	} {
		b := openGood(t, s)
		b.show(`<p id="hint">`, `<p id="said" role="status"></p><p id="hint">`)
		b.run("globalThis.until = async (reached) => { while (!reached()) await new Promise(requestAnimationFrame); }")
		b.run("await (async () => { " + test.script + " })()")
		b.settle()
		all := append(b.unrest(), b.wrongs()...)
		b.forgive()
		if !strings.Contains(strings.Join(all, "\n"), test.words) {
			t.Errorf("%s: complaints %q, want %q", test.script, all, test.words)
		}
	}
}
