package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// TestFirewallLook has counts of packets, and says from when on a firewall drops them.
func TestFirewallLook(t *testing.T) {
	for _, test := range []struct {
		name  string
		looks string // each second: what the interface has seen, and what the sockets have heard
		want  string // after each look: whether a firewall blocks
	}{
		{"all is heard", "10/10 20/20 30/30", ". . ."},
		{"nothing is sent", "0/0 0/0 0/0", ". . ."},
		{"nothing is heard", "10/0 20/0 30/0", ". B B"},
		{"this daemon has stood still, and finds them in its sockets", "10/0 20/20 30/30", ". . ."},
		{"few are sent, as by followers", "1/0 2/0 3/0 4/0 5/0 6/0", ". . . . . B"},
		{"one is heard", "10/0 20/0 30/1 40/1 50/1", ". B . . B"},
		{"most are lost", "10/1 20/2 30/3", ". . ."},
		{"the sockets are opened anew", "10/0 20/0 5/0 15/0 25/0", ". B B B B"},
		{"it is over", "10/0 20/0 20/1", ". B ."},
		{"nobody sends any more", "10/0 20/0 20/0 20/0", ". B B B"},
	} {
		var f firewall
		f.look(netio.Arrivals{Counted: true})
		var got []string
		for _, look := range strings.Fields(test.looks) {
			a := netio.Arrivals{Counted: true}
			_, err := fmt.Sscanf(look, "%d/%d", &a.Seen, &a.Heard)
			assert.NoError(t, err)
			f.look(a)
			got = append(got, map[bool]string{true: "B", false: "."}[f.blocks])
		}
		assert.Is(t, test.want, strings.Join(got, " "), "%s", test.name)
	}
	var f firewall
	for range 5 {
		f.look(netio.Arrivals{}) // no program in the kernel counts
	}
	assert.Is(t, false, f.blocks, "it is known without counts")
}

// TestFirewall has two of three boards behind firewalls of their own, as ufw sets them up. They say so, and take no part: also not
// when the leader is cut off. When the firewall goes they are in again, also if nobody else lives.
func TestFirewall(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		behind := func(_ *config.Config, b *fakeBoard) { b.firewall = true }
		three := l.board(3, nil)
		pass(time.Second)
		one, two := l.board(1, behind), l.board(2, behind)
		pass(5 * time.Second)
		l.wantHolders(3)
		for _, b := range []*fakeBoard{one, two} {
			b.wantProblem(t, "the group's packets arrive on eth0 and do not reach this daemon, so a firewall on this board drops them")
			b.wantLogged(t, "ufw allow 9254/udp", 1)
			s := b.mustStatus(t)
			title := headline(t, s)
			assert.Is(t, "unknown who holds 10.0.0.100: a firewall on this board drops the group's packets", title, "the first line")
		}
		three.get(func() { three.mute, three.deaf = true, true })
		pass(20 * time.Second)
		if got := l.holders(); len(got) > 1 {
			t.Errorf("the boards %v hold the address while the leader is cut off", got)
		}
		three.get(func() { three.mute, three.deaf = false, false })
		pass(2 * time.Second)
		l.wantHolders(3)

		one.get(func() { one.firewall = false })
		pass(3 * time.Second)
		one.wantNoProblem(t)
		three.Kill()
		pass(3 * time.Second)
		l.wantHolders(1)
		one.Kill()
		pass(3 * time.Second)
		l.wantHolders()
		two.get(func() { two.firewall = false })
		pass(3 * time.Second)
		l.wantHolders(2)
	})
}

// TestFirewallOnTheLeader: somebody switches a firewall on on the leader's board. It hears nobody any more, and lets go.
func TestFirewallOnTheLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.get(func() { three.firewall = true })
		pass(10 * time.Second)
		l.wantHolders(2)
		three.wantProblem(t, "a firewall on this board drops them")
		three.get(func() { three.firewall = false })
		pass(3 * time.Second)
		l.wantHolders(2)
		three.wantNoProblem(t)
	})
}

// TestFirewallOnTheHeir: a board that takes no part says so, and another one is the heir.
func TestFirewallOnTheHeir(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		two.get(func() { two.firewall = true })
		pass(10 * time.Second)
		two.wantProblem(t, "a firewall on this board drops them")
		assert.Is(t, "pi1", three.mustStatus(t).HeirName, "the heir")
		three.Kill()
		pass(time.Second)
		l.wantHolders(1)
		two.get(func() { two.firewall = false })
		pass(5 * time.Second)
		assert.Is(t, "pi2", l.boards[0].mustStatus(t).HeirName, "the heir when the firewall lets it")
	})
}
