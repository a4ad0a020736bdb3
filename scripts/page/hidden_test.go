package page

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// rested is for how long a page is hidden: three times as long as it waits between two questions.
const rested = 1500 * time.Millisecond

// A page that nobody sees asks nothing, and asks at once when it is seen again.
func testHidden(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	b := s.open(t, f.address)
	b.reads("is held by pi3")
	// A tab of the same window takes its place.
	made, err := chromedp.CallBrowser(b.ctx, target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	must(t, err)
	b.bringToFront(t, made.TargetID)
	for value[string](b, "document.visibilityState") != "hidden" {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(700 * time.Millisecond) // what it had asked is answered
	before := b.asked()
	status := documented(t)
	lead(&status)
	f.set(status, nil)
	time.Sleep(rested)
	if now := b.asked(); now != before {
		t.Errorf("a hidden page has asked %d times in %v", now-before, rested)
	}
	b.bringToFront(t, chromedp.FromContext(b.ctx).Target.TargetID)
	b.reads("is held by pi1")
}

// bringToFront has the browser show a tab in its window.
func (b *tab) bringToFront(t *testing.T, id target.ID) {
	t.Helper()
	_, err := chromedp.CallBrowser(b.ctx, target.ActivateTarget, target.ActivateTargetParams{TargetID: id})
	must(t, err)
}
