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
		attends := one.checker
		tried, err := one.Try(t.Context(), console.TryRequest{File: "/etc/topdog/other.toml", Config: tryFile})
		assert.NoError(t, err)
		want := console.Tried{Checks: []console.TriedCheck{{NameText: "tcp 10.77.0.1:1", Passing: true}, {NameText: "command a program", Passing: true}}}
		assert.Equal(t, want, tried, "what was tried")
		if one.checker == attends {
			t.Fatal("the checker of the daemon has tried them")
		}
		if o := one.checker.orders[0]; !o.Once || o.Interface != "eth7" || len(o.Floating) != 1 || o.Floating[0].String() != "10.77.0.251" {
			t.Errorf("the order is not of the file: %+v", o)
		}
		if !one.checker.ended {
			t.Error("the other checker goes on")
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
		one.get(func() { one.noChecker = broken })
		_, err := one.Try(t.Context(), asked)
		assert.ErrorIs(t, err, broken, "no checker can be started")
		one.get(func() { one.noChecker, one.muteCheckers = nil, true })

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
		if !one.checker.ended {
			t.Error("its checker goes on")
		}
		one.get(func() { one.muteCheckers = false })
		if _, err := one.Try(t.Context(), asked); err != nil {
			t.Errorf("the next one: %v", err)
		}
		one.platform.StartChecker = nil
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
