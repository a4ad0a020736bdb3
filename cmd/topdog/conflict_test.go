package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

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
		second.untilLogged("another topdog, or another program, has this port, see `ss -ulnp`; stop it or choose another port")
		second.untilLogged("another daemon serves the socket")
		c.watchFor(10 * heartbeat)
		c.undisturbed(began, leader)
		leader.topdog("status").want(t, 0, "status of the first daemon")
		if s, err := leader.Status(); err != nil || !s.Holding || len(s.Problems) > 0 {
			t.Errorf("the first daemon is disturbed: Holding %v, problems %q, %v", s.Holding, s.Problems, err)
		}
		second.signal(syscall.SIGTERM)
		second.ended()
		c.undisturbed(began, leader)
		leader.topdog("status").want(t, 0, "the second daemon removed the first one's socket")
	})
}
