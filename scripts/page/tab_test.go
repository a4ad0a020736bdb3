package page

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tabTimeout is how long a page has for what must happen. On a quiet machine it is milliseconds.
const tabTimeout = 20 * time.Second

//go:embed watch.js
var watchScript string

// tab is a page in a window of its own, and what has happened on it.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	lossy    bool     // requests may fail, because the test makes them fail
	wrong    []string // on the console, or asked of somebody else
	requests []string // paths, in the order in which they were asked
}

// open opens a page. What is wrong on it fails the test when it ends.
func (s *stage) open(t *testing.T, address string) *tab {
	t.Helper()
	b := s.newTab(t, address)
	b.navigate(address)
	return b
}

// openLossy opens a page of which requests may fail, because the test makes them fail.
func (s *stage) openLossy(t *testing.T, address string) *tab {
	t.Helper()
	b := s.newTab(t, address)
	b.expectLoss()
	b.navigate(address)
	return b
}

// newTab makes a window for a page, which is not open yet.
func (s *stage) newTab(t *testing.T, address string) *tab {
	t.Helper()
	at, err := url.Parse(address)
	must(t, err)
	ctx, closeTab := chromedp.NewContext(s.browser)
	b := &tab{t: t, ctx: ctx, origin: at.Scheme + "://" + at.Host}
	t.Cleanup(func() {
		closeTab()
		for _, w := range b.wrongs() {
			t.Error(w)
		}
	})
	must(t, chromedp.Listen(ctx, b.note))
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchScript})
	must(t, err)
	return b
}

// navigate has the tab show another page of the same origin, or the same once more.
func (b *tab) navigate(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// do carries out actions.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabTimeout)
	defer cancel()
	must(b.t, chromedp.Do(ctx, steps...))
}

// value is what an expression of JavaScript has on the page. A promise is awaited.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", firstLine(expression), err)
	}
	return v
}

// run evaluates a script, which may await something.
func (b *tab) run(script string) {
	b.t.Helper()
	value[bool](b, "(async () => { "+script+"\n; return true })()")
}

// until waits until a condition in JavaScript holds, which is looked at with every picture.
func (b *tab) until(condition string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabTimeout)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool]("!!("+condition+")")); err != nil {
		b.t.Fatalf("it does not come: %s: %v; the page says:\n%s", condition, err, value[string](b, "document.body.innerText"))
	}
}

// settle waits until what has changed is shown.
func (b *tab) settle() {
	b.t.Helper()
	b.run("await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))")
}

// wordsTimeout is how long a page has to say something that it has been told. It asks twice a second.
const wordsTimeout = 5 * time.Second

// readable is all that people can read on the page, with one space between two words.
const readable = `document.body.innerText.replace(/\s+/g, ' ')`

// text is that.
func (b *tab) text() string {
	b.t.Helper()
	return value[string](b, readable)
}

// says waits until the page says some words, and returns those that it does not say in time.
func (b *tab) says(words ...string) (missing []string) {
	b.t.Helper()
	b.run(`globalThis.missing = (words) => { const text = ` + readable + `; return words.filter((w) => !text.includes(w)); }`)
	list, err := json.Marshal(words)
	must(b.t, err)
	deadline := time.Now().Add(wordsTimeout)
	for {
		missing = value[[]string](b, "missing("+string(list)+")")
		if len(missing) == 0 || time.Now().After(deadline) {
			return missing
		}
		b.settle()
	}
}

// reads fails the test if the page does not say some words soon.
func (b *tab) reads(words ...string) {
	b.t.Helper()
	if missing := b.says(words...); len(missing) > 0 {
		b.t.Fatalf("the page does not say %q; it says\n%s", missing, b.text())
	}
}

// expectLoss says that requests may fail from now on.
func (b *tab) expectLoss() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lossy = true
}

// asked is how many requests there were.
func (b *tab) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests)
}

func (b *tab) wrongs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong
}

// forgive forgets what was wrong.
func (b *tab) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = nil
}

// note is told all that the browser reports of the tab, in the order in which it happens.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.noteRequest(e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+a.Description)
		}
		b.complain("console.%s: %s", e.Type, strings.Join(words, " "))
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
		b.complain("exception: %s", what)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceNetwork && b.lossy {
			return
		}
		b.complain("the browser says: %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	}
}

func (b *tab) noteRequest(address string) {
	at, err := url.Parse(address)
	if err != nil || (at.Scheme != "data" && at.Scheme+"://"+at.Host != b.origin) {
		b.complain("it asks somebody else: %s", address)
		return
	}
	if at.Scheme != "data" {
		b.requests = append(b.requests, at.Path)
	}
}

// complain notes what is wrong, once.
func (b *tab) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, known := range b.wrong {
		if known == text {
			return
		}
	}
	b.wrong = append(b.wrong, text)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
