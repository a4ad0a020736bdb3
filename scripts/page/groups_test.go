package page

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// testGroups has a board with two groups: the page shows both, and one of them in full.
func testGroups(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	first, second := documented(t), documented(t)
	first.Group, second.Group = "dns1", "dns2"
	second.Addresses = []string{"192.168.1.251/24"}
	f.set(first, nil)
	f.setOthers(second)
	b := s.open(t, f.address)
	b.reads("192.168.1.250 is held by pi3", "dns1 held 192.168.1.250 pi3", "dns2 held 192.168.1.251 pi3")
	b.keepsRules(t, allLooks...)
	if controls := b.keepsKeyboardRules(t, laptop); controls != 2 {
		t.Errorf("the keyboard reaches %d groups, want 2", controls)
	}
	b.keepsKeyboardRules(t, phone.dark())
	b.lookAs(laptop)

	// The group that is not shown gets into trouble, and somebody looks.
	takeOver(&second)
	second.HeldBy, second.Leader = "", ""
	second.Role, second.Boards[1].Role = "follower", "follower"
	f.setOthers(second)
	b.reads("dns2 not held 192.168.1.251 nobody", "192.168.1.250 is held by pi3")
	b.keepsRules(t, narrow, phone.dark(), laptop)
	b.do(chromedp.Focus(chromedp.CSS("#groups li:last-child a")), chromedp.KeyEvent(kb.Enter))
	b.comes(`location.search === '?group=dns2' && document.querySelector('[aria-current]').textContent.includes('dns2')`)
	b.reads("192.168.1.251 is held by nobody", "dns1 held")
	b.keepsRules(t, narrow, laptop.dark())

	// The daemon starts again with one group. The page notices.
	b.expectLoss()
	f.setOthers()
	b.comes(`document.getElementById('groups').parentElement.hidden && document.getElementById('hero-name').textContent === 'pi3'`)
	b.reads("192.168.1.250 is held by pi3")
	f.setOthers(second)
	b.comes(`document.querySelectorAll('#groups li').length === 2`)
	b.reads("dns2 not held", "dns1 held")
}

// comes waits until a condition holds, also on a page that takes the place of this one.
func (b *tab) comes(condition string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabTimeout)
	defer cancel()
	for {
		if holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+condition+")")); err == nil && holds {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			b.t.Fatalf("it does not come: %s", condition)
		}
	}
}
