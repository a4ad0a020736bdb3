package page

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed rules/*.js
var ruleFiles embed.FS

// ruleScript is all rules, in the order of their files.
var ruleScript = func() string {
	var all strings.Builder
	names, err := fs.Glob(ruleFiles, "rules/*.js")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, name := range names {
		text, err := ruleFiles.ReadFile(name)
		if err != nil {
			panic(err) // the program has the file
		}
		all.Write(text)
	}
	return all.String()
}()

// finding is what breaks a rule.
type finding struct{ Rule, Where, What string }

func (f finding) String() string { return f.Rule + ": " + f.Where + " " + f.What }

// look is how a page is looked at.
type look struct {
	width, height int64
	scheme        string // "light" or "dark"
	still         bool   // without motion
	fine          bool   // two pixels of the screen for one of the page, as phones have
}

func (l look) String() string {
	text := fmt.Sprintf("%d %s", l.width, l.scheme)
	if l.still {
		text += " still"
	}
	return text
}

// The phone, the laptop and the projector. 320 is what WCAG 1.4.10 has a page fit into.
var (
	phone     = look{width: 360, height: 800, scheme: "light"}
	laptop    = look{width: 1280, height: 900, scheme: "light"}
	projector = look{width: 1920, height: 1080, scheme: "light"}
	narrow    = look{width: 320, height: 640, scheme: "light", still: true}
)

func (l look) dark() look  { l.scheme = "dark"; return l }
func (l look) quiet() look { l.still = true; return l }
func (l look) sharp() look { l.fine = true; return l }

// allLooks are those in which every page keeps the rules.
var allLooks = []look{narrow, phone, phone.dark(), laptop, laptop.dark(), projector, projector.dark()}

// lookAs shows the tab as a look has it.
func (b *tab) lookAs(l look) {
	b.t.Helper()
	scale := 1.0
	if l.fine {
		scale = 2
	}
	b.do(chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateScale(scale)))
	motion := "no-preference"
	if l.still {
		motion = "reduce"
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
	must(b.t, err)
	b.settle()
}

// findings is what breaks a rule on the page as it is.
func (b *tab) findings() []finding {
	b.t.Helper()
	b.run(ruleScript)
	return value[[]finding](b, "rules.check()")
}

// keepsRules looks at the page in several ways, and fails the test if it breaks a rule.
func (b *tab) keepsRules(t *testing.T, looks ...look) {
	t.Helper()
	for _, l := range looks {
		b.lookAs(l)
		for i, f := range b.findings() {
			if i == 20 {
				t.Errorf("%s: and more", l)
				break
			}
			t.Errorf("%s: %s", l, f)
		}
	}
}

// keepsKeyboardRules walks through the page with the Tab key.
func (b *tab) keepsKeyboardRules(t *testing.T, l look) (controls int) {
	t.Helper()
	b.lookAs(l)
	controls, found := b.walk()
	for _, f := range found {
		t.Errorf("%s: %s", l, f)
	}
	return controls
}

// walk presses the Tab key until all has been visited.
func (b *tab) walk() (controls int, found []finding) {
	b.t.Helper()
	b.run(ruleScript)
	controls = value[int](b, "rules.before()")
	for range 2*controls + 5 { // what scrolls is reached as well
		b.do(chromedp.KeyEvent(kb.Tab))
		at := value[struct {
			Over     bool
			Findings []finding
		}](b, "rules.focus()")
		found = append(found, at.Findings...)
		if at.Over {
			return controls, found
		}
	}
	return controls, append(found, finding{"keyboard", "the page", "keeps the focus for ever"})
}

// isCalm fails the test if things jump or screen readers are told something while nothing happens.
func (b *tab) isCalm(t *testing.T, during time.Duration) {
	t.Helper()
	b.run("watch.begin()")
	time.Sleep(during)
	for _, u := range b.unrest() {
		t.Error(u)
	}
}

// unrest is what has jumped, and what screen readers were told, since watch.begin().
func (b *tab) unrest() (all []string) {
	b.t.Helper()
	for _, jump := range value[[]struct {
		Value float64
		What  string
	}](b, "watch.shifts") {
		all = append(all, fmt.Sprintf("something jumps while nothing happens (%.4f): %s", jump.Value, jump.What))
	}
	for _, said := range value[[]string](b, "watch.said") {
		all = append(all, fmt.Sprintf("screen readers are told while nothing happens: %q", said))
	}
	return all
}
