package page

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// goodPage keeps all rules.
//
//go:embed testdata/good.html
var goodPage string

// mistakes are changes to the good page, each of which breaks a rule, and no other.
var mistakes = []struct{ rule, old, with string }{
	{"language", ` lang="en"`, ``},
	{"title", `<title>A good page</title>`, ``},
	{"zoom", `<meta name="viewport" content="width=device-width">`, ``},
	{"zoom", `width=device-width`, `width=device-width, user-scalable=no`},
	{"headings", `<h1>A good page</h1>`, `<p>A good page</p>`},
	{"headings", `<h2>Boards</h2>`, `<h1>Boards</h1>`},
	{"headings", `<h2>Boards</h2>`, `<h3>Boards</h3>`},
	{"headings", `<h2>Boards</h2>`, `<h2></h2>`},
	{"landmarks", `<footer>`, `<p>Outside.</p><footer>`},
	{"landmarks", `</main>`, `</main><main><p>Another.</p></main>`},
	{"landmarks", `<nav aria-label="Pages">`, `<nav><a href="#x">First</a></nav><nav aria-label="Pages">`},
	{"ids", `<p id="hint">`, `<p id="hint">Twice.</p><p id="hint">`},
	{"ids", `aria-describedby="hint"`, `aria-describedby="no-hint"`},
	{"ids", `<label for="name">Name</label>`, `<label for="name">Name</label><label for="nobody">Nobody</label>`},
	{"names", `<button>Press</button>`, `<button><span aria-hidden="true">×</span></button>`},
	{"names", `<label for="name">Name</label>`, `<p>Name</p>`},
	{"names", `>Elsewhere</a>`, `></a>`},
	{"pictures", `alt="A board"`, ``},
	{"pictures", `role="img" aria-label="Lit"`, `role="img"`},
	{"pictures", `<svg role="img" aria-label="A drawing"`, `<svg`},
	{"nameless roles", `<p id="hint">`, `<p aria-label="Unheard" id="hint">`},
	{"lists", `<ul><li>One</li></ul>`, `<div><li>One</li></div>`},
	{"lists", `<ul><li>One</li></ul>`, `<ul><div>One</div></ul>`},
	{"lists", `<th scope="col">`, `<th>`},
	{"hidden controls", `<button>Press</button>`, `<span aria-hidden="true"><button>Press</button></span>`},
	{"order", `<button>Press</button>`, `<button tabindex="2">Press</button>`},
	{"contrast of text", `<p id="hint">`, `<p id="hint" style="color: #777">`},
	{"contrast of text", `<p id="hint">`, `<p id="hint" style="opacity: 0.5">`},
	{"contrast of text", `<p id="hint">`, `<p id="hint" style="background: linear-gradient(#fff, #000)">`},
	{"contrast of text", `<h1>`, `<h1 style="color: #999">`},
	{"contrast of text", `placeholder="pi1"`, `placeholder="pi1" class="pale"`},
	{"contrast of text", `class="drawn"`, `class="drawn" fill="#666"`},
	{"contrast of fields", `id="name"`, `id="name" style="border-color: #ddd"`},
	{"sideways", `<p id="hint">`, `<div style="width: 120vw; height: 1px"></div><p id="hint">`},
	{"spilled text", `<p id="hint">`, `<div style="width: 40px; border: 1px solid; height: 30px">Unbreakable</div><p id="hint">`},
	{"cut text", `<p id="hint">`, `<div style="width: 40px; overflow: hidden">Unbreakable</div><p id="hint">`},
	{"cut text", `x="10" y="25"`, `x="185" y="25"`},
	{"broken words", `<p id="hint">`, `<p style="width: 60px; border: 1px solid; overflow-wrap: anywhere">unplugged</p><p id="hint">`},
	{"overlapping text", `<p id="hint">`, `<span style="position: relative; top: 30px">A long line of text.</span><p id="hint">`},
	{"overlapping boxes", `<div class="box">Second</div>`, `<div class="box" style="margin-top: -20px; padding-top: 30px">Second</div>`},
	{"small targets", `<button>Press</button>`, `<button style="min-height: 0; height: 20px; padding: 0 1rem">Press</button>`},
	{"flashes", `class="lamp"`, `class="lamp fast large"`},
	{"motion", `class="lamp"`, `class="lamp stubborn"`},
}

// keyboardMistakes break a rule of the walk with the Tab key.
var keyboardMistakes = []struct{ rule, old, with string }{
	{"focus", `<button>`, `<button style="outline: none">`},
	{"focus", `<button>`, `<button style="outline-color: #eee">`},
	{"focus", `<button>`, `<button style="outline-width: 1px">`},
	{"keyboard", `<button>Press</button>`, `<button style="position: fixed; clip-path: inset(50%)">Press</button>`},
	{"keyboard", `<button>`, `<button onfocus="this.blur()">`},
}

// A page that is good has no findings, and each mistake has one of its rule and of no other.
func testRulesCanFail(t *testing.T, s *stage) {
	b := openGood(t, s)
	b.keepsRules(t, append(allLooks, phone.quiet())...)
	proved := map[string]bool{}
	for _, m := range mistakes {
		// What moves for whoever wants no motion breaks a rule anyway.
		b.lookAs(look{width: 1280, height: 900, scheme: "light", still: m.rule == "motion"})
		b.show(m.old, m.with)
		rules := rulesOf(b.findings())
		if !slices.Equal(rules, []string{m.rule}) {
			t.Errorf("%s in place of %s: breaks %q, want %q alone", m.with, m.old, rules, m.rule)
		}
		proved[m.rule] = true
	}
	for _, rule := range value[[]string](b, "rules.names()") {
		if !proved[rule] {
			t.Errorf("no mistake shows that the rule %q can fail", rule)
		}
	}
}

func testKeyboardRulesCanFail(t *testing.T, s *stage) {
	b := openGood(t, s)
	b.lookAs(laptop)
	if n := b.keepsKeyboardRules(t, laptop); n != 5 {
		t.Errorf("the good page has %d controls, want 5", n)
	}
	for _, m := range keyboardMistakes {
		b.show(m.old, m.with)
		_, found := b.walk()
		if rules := rulesOf(found); !slices.Equal(rules, []string{m.rule}) {
			t.Errorf("%s in place of %s: breaks %q, want %q alone", m.with, m.old, rules, m.rule)
		}
	}
}

// openGood opens the good page.
func openGood(t *testing.T, s *stage) *tab {
	l := s.listen(t)
	paths := http.NewServeMux()
	paths.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, goodPage) })
	go func() { _ = http.Serve(l, paths) }() // it ends with the port
	return s.open(t, "http://"+l.Addr().String())
}

// show has the tab show the good page with a change.
func (b *tab) show(old, with string) {
	b.t.Helper()
	if !strings.Contains(goodPage, old) {
		b.t.Fatalf("there is no %s in the good page", old)
	}
	tree, err := chromedp.Call(b.ctx, page.GetFrameTree, struct{}{})
	must(b.t, err)
	_, err = chromedp.Call(b.ctx, page.SetDocumentContent, page.SetDocumentContentParams{
		FrameID: tree.FrameTree.Frame.ID, HTML: strings.Replace(goodPage, old, with, 1),
	})
	must(b.t, err)
	b.settle()
}

func rulesOf(found []finding) (rules []string) {
	for _, f := range found {
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}
