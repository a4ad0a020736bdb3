package console

import (
	"testing"

	"topdog/internal/lab/assert"
)

func TestTransitionText(t *testing.T) {
	address := []string{"192.168.1.250/24"}
	for _, tt := range []struct {
		n    Transition
		want string
	}{
		{Transition{Number: 3, Event: EventSnapshot, Role: RoleFollower, Leader: "192.168.1.13", LeaderName: "pi3", Term: 7, ReasonText: "heard the leader"},
			"   3  snapshot          follower of pi3 (192.168.1.13), term 7: heard the leader"},
		{Transition{Number: 4, Event: EventRoleChanged, Role: RoleLeader, Holding: true, Addresses: address, Leader: "192.168.1.11", Term: 8, ReasonText: "nobody answered for the leader"},
			"   4  role_changed      leader with 192.168.1.250/24, term 8: nobody answered for the leader"},
		{Transition{Number: 12345, Event: EventAddressReleased, Role: RoleLeader, Addresses: address, Term: 8, Missed: 9},
			"12345  address_released  leader without the address, term 8 (9 before it were missed)"},
		{Transition{Event: EventLeaderChanged, Role: RoleFollower, Leader: "9", Term: 1, ReasonText: "\x1b[2J"}, "   0  leader_changed    follower of 9, term 1: ?[2J"},
		{Transition{Number: 5, Event: EventGradeChanged, Role: RoleFollower, Leader: "9", Term: 1, ReasonText: "heard the leader", Grade: GradeFailing},
			"   5  grade_changed     follower of 9, term 1: failing"},
		{Transition{Event: EventRoleChanged, Role: RoleIsolated}, "   0  role_changed      isolated"},
	} {
		assert.Is(t, tt.want, tt.n.Text(), "")
	}
}

func TestLeads(t *testing.T) {
	for _, tt := range []struct {
		s    Status
		want bool
	}{
		{Status{Role: RoleLeader, Holding: true}, true},
		{Status{Role: RoleLeader}, false},
		{Status{Role: RoleLeader, Holding: true, MajorityUnheard: true}, false}, // the fence keeps it from answering
		{Status{Role: RoleFollower}, false},
		{healthy(), false},
	} {
		assert.Is(t, tt.want, tt.s.Leads(), "a %s, holding %t, majority unheard %t", tt.s.Role, tt.s.Holding, tt.s.MajorityUnheard)
	}
}
