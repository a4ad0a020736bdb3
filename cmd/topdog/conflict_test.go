package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

func TestWrongKey(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		wrong := c.board(3) // of the highest rank, had it the key
		must(t, wrong.SetKey(newKey(t)))
		members := c.except(wrong)
		c.start(members...)
		old := c.agree()

		wrong.start()
		wrong.untilProblem(old.Addr.Addr().String(), "fail authentication", "key")
		for _, b := range members {
			b.untilProblem(wrong.Addr.Addr().String(), "fail authentication", "key")
		}
		if s, err := wrong.Status(); err != nil || s.Holding || s.Held() {
			t.Errorf("%s with a wrong key: Holding %v, Held %v, %v", wrong, s.Holding, s.Held(), err)
		}

		// Not even when the address is free for a moment.
		pulled := time.Now()
		must(t, old.Pull())
		c.untilTakenFrom(old)
		leader := c.agree(c.except(wrong, old)...)
		if leader == wrong {
			t.Errorf("%s acquired the address with a wrong key", wrong)
		}
		must(t, old.Plug())
		c.agreeOn(leader, members...)
		c.twoHoldersAtMost(pulled, 0)

		// With the right key it is one of them.
		must(t, wrong.SetKey(c.key))
		wrong.signal(syscall.SIGTERM)
		wrong.ended()
		wrong.start()
		c.agreeOn(leader, c.boards...)
		c.twoHoldersAtMost(pulled, 0)
	})
}

func TestOneWithoutKey(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		open := c.board(2)
		open.set(settings{"key_file": quote("none")})
		leader := c.board(1)
		c.start(leader)
		c.agree(leader)
		open.start()
		leader.untilProblem("10.77.0.2", "not authenticated", "copy the key file")
		open.untilProblem("10.77.0.1", "this board has no key", "copy the key file")
		open.untilProblem(leader.HardwareAddr.String(), vip.String())
		c.twoHoldersAtMost(c.began, 0)
		c.agreeOn(leader, leader)
	})
}

// TestThreeClonesStartTogether: one of them stays, and so soon that the others have not looked again.
func TestThreeClonesStartTogether(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		for _, b := range c.boards {
			b.set(settings{"id": "7"})
		}
		began := time.Now()
		c.start(c.boards...)
		c.until("one leads and the others stay out", func() string {
			roles := map[string]int{}
			for _, b := range c.boards {
				s, err := b.Status()
				if err != nil {
					return err.Error()
				}
				roles[s.Role]++
			}
			if roles[console.RoleLeader] != 1 || roles[console.RoleBarred] != 2 || len(c.Holders.Since(began).Spans) == 0 {
				return fmt.Sprint(roles)
			}
			return ""
		})
		held := c.Holders.Since(began).Spans[0].From.Sub(began)
		t.Logf("held %v after the start", held.Round(time.Millisecond))
		if held > 4*time.Second {
			t.Errorf("nobody held the address for %v: all stayed out", held.Round(time.Millisecond))
		}
		for _, b := range c.boards {
			b.untilProblem("id 7")
			s, err := b.Status()
			must(t, err)
			if o := b.topdog("status"); s.Role == console.RoleBarred && o.status != 1 {
				t.Errorf("status of a board that stays out: %v", o)
			}
		}
		c.twoHoldersAtMost(began, 0)
	})
}

// unwrapped undoes the line breaks of a text for people.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// A machine that is no board has the address when the group starts.
func TestForeignMachine(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		must(t, c.LAN.Client().AddAddress(vip24))
		c.start(c.boards...)
		mac := c.LAN.Client().HardwareAddr.String()
		c.until("somebody finds the machine", func() string {
			for _, b := range c.boards {
				s, err := b.Status()
				if err == nil && slices.ContainsFunc(s.Problems, func(p console.Problem) bool {
					return strings.Contains(p.Text, mac) && strings.Contains(p.Text, vip.String())
				}) {
					b.untilLogged(mac, vip.String())
					return ""
				}
			}
			return "nobody complains of " + mac
		})
		c.watchFor(2 * time.Second) // long enough for everybody to try
		if held := c.Holders.Since(c.began).Spans; len(held) > 0 {
			t.Errorf("the address was claimed though a foreign machine has it: %s", c.spans(c.began))
		}

		freed := time.Now()
		must(t, c.LAN.Client().DeleteAddress(vip24))
		leader := c.agree()
		t.Logf("claimed %v after the foreign machine had gone", c.Holders.Since(freed).Spans[0].From.Sub(freed).Round(time.Millisecond))
		leader.untilNoProblems()
		c.twoHoldersAtMost(c.began, 0)
	})
}

// A second daemon on a board can open nothing, says so, and disturbs nothing;
// when the first ends, it takes its place.
func TestSecondDaemon(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		began := time.Now()

		second := c.add(leader.Number, leader.Settings()) // the same socket, too
		second.start()
		second.untilLogged("another topdog, or another program, of the user", "has this port; stop it or choose another port")
		second.untilLogged("another daemon serves the socket")
		c.watchFor(10 * heartbeat)
		c.undisturbed(began, leader)
		if o := leader.topdog("status"); o.status != 0 {
			t.Errorf("status of the first daemon: %v", o)
		}
		if s, err := leader.Status(); err != nil || !s.Holding || len(s.Problems) > 0 {
			t.Errorf("the first daemon is disturbed: Holding %v, problems %q, %v", s.Holding, s.Problems, err)
		}
		second.signal(syscall.SIGTERM)
		second.ended()
		c.undisturbed(began, leader)
		if o := leader.topdog("status"); o.status != 0 {
			t.Errorf("the second daemon removed the first one's socket: %v", o)
		}
	})
}
