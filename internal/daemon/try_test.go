package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// tryFile is a configuration that no daemon of these tests has.
const tryFile = `address = "10.77.0.251"
interface = "eth7"
[[check]]
tcp = "10.77.0.1:1"
when = "leading"
[[check]]
command = ["/bin/true"]
title = "a program"
`

// TestTry: checks that the daemon does not have are tried by another checker, and change nothing.
func TestTry(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(3 * time.Second)
		tried, err := one.Try(t.Context(), console.TryRequest{File: "/etc/topdog/other.toml", Config: tryFile})
		assert.NoError(t, err)
		want := console.Tried{Checks: []console.TriedCheck{{NameText: "tcp 10.77.0.1:1", Passing: true}, {NameText: "command a program", Passing: true}}}
		assert.Equal(t, want, tried, "what was tried")
		assert.Is(t, 1, len(one.checker.orders), "orders of the checker of the daemon")
		if o := one.trier.last(); !o.Once || o.Interface != "eth7" || len(o.Floating) != 1 || o.Floating[0].String() != "10.77.0.251" {
			t.Errorf("the order is not of the file: %+v", o)
		}
		if one.trier.runs() || !one.checker.runs() {
			t.Error("the other checker goes on, or that of the daemon does not")
		}
		one.get(func() {
			if o := one.checks.order; len(o.Checks) != 1 || o.Once {
				t.Errorf("the daemon has this order now: %+v", o)
			}
		})
		one.wantGrade(t, "passing", "")
	})
}

// TestTryRefused: what cannot be tried is refused, with what to do about it.
func TestTryRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(3 * time.Second)
		asked := console.TryRequest{File: "/etc/topdog/other.toml", Config: tryFile}
		for bad, want := range map[string]string{"": "address is missing", "addres = 1": "other.toml:1:1",
			strings.Repeat("#", config.MaxFileBytes+1): "65537 bytes"} {
			if _, err := one.Try(t.Context(), console.TryRequest{File: asked.File, Config: bad}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", bad, err)
			}
		}
		broken := errors.New("no process")
		one.trier.with(func() { one.trier.broken = broken })
		_, err := one.Try(t.Context(), asked)
		assert.ErrorContains(t, err, broken.Error(), "no checker can be started")
		one.trier.with(func() { one.trier.broken, one.trier.stuck = nil, broken })
		_, err = one.Try(t.Context(), asked)
		assert.ErrorIs(t, err, broken, "it takes no order")
		one.trier.with(func() { one.trier.stuck, one.trier.mute = nil, true })

		ctx, hangUp := context.WithCancel(t.Context())
		first := make(chan error)
		go func() {
			_, err := one.Try(ctx, asked)
			first <- err
		}()
		pass(time.Second)
		if _, err := one.Try(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("two at a time: %v", err)
		}
		hangUp()
		assert.ErrorIs(t, <-first, context.Canceled, "whoever has asked has hung up")
		if one.trier.runs() {
			t.Error("its checker goes on")
		}
		one.trier.with(func() { one.trier.mute = false })
		if _, err := one.Try(t.Context(), asked); err != nil {
			t.Errorf("the next one: %v", err)
		}
		one.platform.Trier = nil
		if _, err := one.Try(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "runs no checks") {
			t.Errorf("no checker at all: %v", err)
		}
	})
}

// TestTryTakesAnyFile: a request has room for any configuration that the daemon reads.
func TestTryTakesAnyFile(t *testing.T) {
	const perByte = 6 // "\u003c"
	if console.MaxTryBytes < perByte*config.MaxFileBytes {
		t.Errorf("a file of %d bytes may not fit into %d", config.MaxFileBytes, console.MaxTryBytes)
	}
}
