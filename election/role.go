package election

import "fmt"

// Role is what a board is at the moment.
type Role uint8

// The roles. Package documentation says what they mean.
const (
	Isolated Role = iota
	Listener
	Follower
	Candidate
	Leader
	Barred
	roleCount
)

var roleNames = [roleCount]string{
	Isolated: "isolated", Listener: "listener", Follower: "follower",
	Candidate: "candidate", Leader: "leader", Barred: "barred",
}

func (r Role) String() string {
	if r < roleCount {
		return roleNames[r]
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// edges lists the changes of role that make sense. Any other one is a mistake in
// this package, and stops the program where it was made instead of letting two
// boards hold one address.
var edges = [roleCount][roleCount]bool{
	Isolated:  {Listener: true},
	Listener:  {Follower: true, Candidate: true, Isolated: true, Barred: true},
	Follower:  {Follower: true, Candidate: true, Leader: true, Isolated: true, Barred: true},
	Candidate: {Follower: true, Leader: true, Listener: true, Isolated: true, Barred: true},
	Leader:    {Follower: true, Isolated: true, Barred: true},
	Barred:    {Listener: true, Isolated: true},
}

// CanBecome reports whether a board of this role may change to another one.
func (r Role) CanBecome(to Role) bool { return edges[r][to] }
