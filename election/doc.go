// Package election decides who leads. It is pure: it has no clock, no socket,
// no goroutine, no logger and no randomness of its own.
//
// A [Core] decides for one board. Time comes in as a value. Messages come in
// through [Core.Step]. Every other event has a method of its own: the link comes
// or goes ([Core.Link]), a deadline arrives ([Core.Wake]), a probe of the address
// ends ([Core.Probed]), a person asks for a handover ([Core.Resign]), the process
// is asked to end ([Core.Stop]). Each method returns what the owner must now do, in
// this order: send a message, acquire or release the floating address, probe it,
// tell people. The owner asks [Core.Deadline] when to call [Core.Wake] next. The
// daemon, the simulator and the demo run the same core. The shape is that of
// etcd-io/raft.
//
// # Roles
//
//	Isolated   the link is down; neither hears nor speaks
//	Listener   the link has just come up; hears before it speaks
//	Follower   follows a leader, or waits for the one that was announced
//	Candidate  suspects the leader and asks; or found none and is about to claim
//	Leader     holds the address
//	Barred     stays out, because another live board has the same id, or because
//	           the group runs another algorithm
//
// Every change of role or leader is made by one of the become functions, with one
// reason. Each stands in the file of its role (isolated.go, listener.go, follower.go,
// candidate.go, leader.go, barred.go), and all go through become in role.go.
// become releases the address when a leader becomes something else; becomeLeader
// acquires it.
//
// # What is shared and what an algorithm brings
//
// The core keeps the roster, the ranks, the terms, the failure detector, the
// leader's heartbeats and the handover. It heals partitions, and it has a leader
// that stood still ask before it goes on. An algorithm ([Algorithm]) decides which
// board claims when the leader is gone, and when it may. It reads and acts through
// a [Board]. heir.go has the default, which asks before it decides. Package
// literature has the others. Any algorithm runs with any failure detector
// (detector.go): ask.go, fixed.go and nfde.go. docs/algorithms.md compares the
// algorithms.
//
// # Times
//
// H is the heartbeat interval, G = max(4 ms, H/10) the grace: no board takes
// over sooner than G after the moment at which a heartbeat was due. A leader whose
// loop is late by less stays the leader. Where a lease is watched, the limit is three
// quarters of G.
package election
