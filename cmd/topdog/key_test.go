package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/wire"
)

// mustKey runs a verb of topdog key that has to succeed and to say something.
func (b *board) mustKey(says string, args ...string) outcome {
	b.c.t.Helper()
	o := b.topdog(append([]string{"key"}, args...)...)
	if o.status != 0 || !strings.Contains(o.stdout, says) {
		b.c.t.Fatalf("%s: topdog key %q does not say %q: %v", b, args, says, o)
	}
	return o
}

// keys are the fingerprints of what is in the key file.
func (b *board) keys() wire.Keys {
	b.c.t.Helper()
	keys, err := config.LoadKeys(b.KeyFile())
	must(b.c.t, err)
	return keys.Fingerprints()
}

// addsKey has a new key added on all boards, the way people do it. It returns the old one and the new one.
func (c *testCluster) addsKey() (was, next string) {
	c.t.Helper()
	c.board(1).mustKey("added the key", "add")
	keys := c.board(1).keys()
	pipe := filepath.Join(c.t.TempDir(), "pipe")
	must(c.t, os.WriteFile(pipe, []byte(c.board(1).mustKey("", "export").stdout), 0o600))
	for _, b := range c.boards[1:] {
		b.mustKey("added the key "+keys.Also.String(), "add", "--from", pipe)
	}
	return keys.Signs.String(), keys.Also.String()
}

// dropped counts the packets of other boards that each board has not believed.
func (c *testCluster) dropped() map[string]uint64 {
	c.t.Helper()
	counts := map[string]uint64{}
	for _, b := range c.boards {
		s, err := b.Status()
		must(c.t, err)
		for _, reason := range []wire.DropReason{wire.BadTag, wire.Replayed, wire.Unproven} {
			counts[b.String()+": "+reason.String()] = s.Counters.DroppedByReason[reason.Identifier()]
		}
	}
	return counts
}

// TestKeyRotation changes the key of three boards, goes back from half of the way, and goes there again.
// The address stays where it is, and the client notices nothing.
func TestKeyRotation(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		began, before := time.Now(), c.dropped()

		old, next := c.addsKey()
		few := []*board{c.except(leader)[0], leader}
		if o := c.board(1).topdog("key", "drop", next, "--wait", "1s"); o.status != 0 || c.board(1).keys().Also != 0 {
			t.Errorf("the new key, which nobody signs with, cannot be dropped: %v", o)
		}
		// Board 1 does not accept it any more, so nobody may sign with it.
		c.board(2).topdog("key", "first", next, "--wait", "2s").want(t, exitFailure, "it signs with a key that another does not accept",
			c.board(1).String(), "does not accept it", "--force")
		pipe := filepath.Join(t.TempDir(), "pipe")
		must(t, os.WriteFile(pipe, []byte(c.board(2).mustKey("", "export").stdout), 0o600))
		c.board(1).mustKey("added", "add", "--from", pipe)

		for _, b := range few {
			b.mustKey("signs with the key "+next, "first", next)
		}
		// The others sign with the old key.
		leader.topdog("key", "drop", old, "--wait", "2s").want(t, exitFailure, "it drops a key that others sign with", "signs with "+old)
		leader.topdog("status").want(t, 0, "status", "changing: this board signs with "+next, "2 with "+next, "1 with "+old)
		for _, b := range few {
			b.mustKey("signs with the key "+old, "first", old)
		}
		c.undisturbed(began, leader)

		for _, b := range c.boards {
			b.mustKey("signs with the key "+next, "first", next)
		}
		for _, b := range c.boards {
			b.mustKey("dropped the key "+old, "drop", old)
		}
		for _, b := range c.boards {
			if keys := b.keys(); keys.Signs.String() != next || keys.Also != 0 {
				t.Errorf("%s has the keys %v and %v", b, keys.Signs, keys.Also)
			}
		}
		c.watchFor(10 * heartbeat) // longer than it takes to miss a leader
		c.agreeOn(leader, c.boards...)
		c.undisturbed(began, leader)
		c.twoHoldersAtMost(began, 0)
		assert.Equal(t, before, c.dropped(), "packets that were dropped")

		// The switch of a leader that is killed hands over, with the new key.
		killed := time.Now()
		leader.signal(syscall.SIGKILL)
		leader.gone()
		after := c.agree()
		c.twoHoldersAtMost(killed, 0)
		c.handedOver(after)

		// A daemon that is started with the old key, which a thief may have, is heard by nobody.
		must(t, leader.SetKey(c.key))
		c.start(leader)
		after.untilProblem("fail authentication")
		c.answeredBy(after)
	})
}

// TestKeyVerbs has one board, with and without its daemon.
func TestKeyVerbs(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, nil)
		b := c.board(1)
		// A board whose daemon does not run gets another key, and goes no step further by itself.
		b.mustKey("the daemon does not run", "add")
		b.topdog("key", "first", b.keys().Also.String()).want(t, exitFailure, "first without a daemon", "--force")
		c.start(b)
		c.agree()
		keys := b.keys()
		if o := b.mustKey(keys.Signs.String()+" signs", "show"); !containsAll(o.stdout, []string{keys.Also.String() + " accepted", "no other board"}) {
			t.Errorf("show: %v", o)
		}
		b.mustKey("signs with the key "+keys.Also.String(), "first", keys.Also.String())
		b.mustKey("dropped the key "+keys.Signs.String(), "drop")
		b.mustKey("has no key "+keys.Signs.String()+"; nothing was changed", "drop", keys.Signs.String())

		for _, args := range [][]string{{"first", "nonsense"}, {"drop", "a", "b"}, {"add", "--wait", "-1s"}, {"add", "key"}} {
			b.topdog(append([]string{"key"}, args...)...).want(t, exitUsage, fmt.Sprintf("%q", args))
		}
		b.set(settings{"key_file": quote("none")})
		b.topdog("key", "add").want(t, exitConfig, "without a key", `key_file = "none"`)
	})
}
