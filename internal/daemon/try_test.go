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

// TestTry: checks that the daemon does not have are tried, and change nothing.
func TestTry(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(3 * time.Second)
		tried, err := one.Try(t.Context(), console.TryRequest{File: "/etc/topdog/other.toml", Config: tryFile})
		assert.NoError(t, err)
		want := console.Tried{Checks: []console.TriedCheck{{NameText: "tcp 10.77.0.1:1", Passing: true}, {NameText: "command a program", Passing: true}}}
		assert.Equal(t, want, tried, "what was tried")
		assert.Is(t, 1, len(one.checker.orders), "orders of the checker of the daemon")
		if o := one.checker.tried; o.Interface != "eth7" || len(o.Floating) != 1 || o.Floating[0].String() != "10.77.0.251" {
			t.Errorf("the order is not of the file: %+v", o)
		}
		one.get(func() {
			if o := one.checks.order; len(o.Checks) != 1 {
				t.Errorf("the daemon has this order now: %+v", o)
			}
		})
		one.wantGrade(t, "passing", "")
	})
}

// TestTryOfSeveralGroups: of a file with several groups, the checks of the daemon's own are tried.
func TestTryOfSeveralGroups(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(3 * time.Second)
		groups := func(second string) console.TryRequest {
			return console.TryRequest{File: "/etc/topdog/other.toml", Config: `[[group]]
name = "another"
address = "10.77.0.251"
[[group]]
name = "` + second + `"
address = "10.77.0.252"
[[group.check]]
tcp = "10.77.0.1:2"
`}
		}
		tried, err := one.Try(t.Context(), groups(one.cfg.Group))
		assert.NoError(t, err)
		assert.Equal(t, console.Tried{Checks: []console.TriedCheck{{NameText: "tcp 10.77.0.1:2", Passing: true}}}, tried, "what was tried")
		if _, err := one.Try(t.Context(), groups("a third")); err == nil || !strings.Contains(err.Error(), "has no group "+one.cfg.Group) {
			t.Errorf("without its group: %v", err)
		}
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
		one.checker.with(func() { one.checker.broken = broken })
		_, err := one.Try(t.Context(), asked)
		assert.ErrorContains(t, err, broken.Error(), "no checker can be started")
		one.checker.with(func() { one.checker.broken, one.checker.stuck = nil, broken })
		_, err = one.Try(t.Context(), asked)
		assert.ErrorIs(t, err, broken, "it takes no order")
		one.checker.with(func() { one.checker.stuck, one.checker.hangs = nil, true })

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
		one.checker.with(func() { one.checker.hangs = false })
		if _, err := one.Try(t.Context(), asked); err != nil {
			t.Errorf("the next one: %v", err)
		}
		checker := one.platform.Checker
		defer func() { one.platform.Checker = checker }()
		one.platform.Checker = nil
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
