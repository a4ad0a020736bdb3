// Package election decides who leads. It is pure: it has no clock, no socket,
// no goroutine, no logger and no randomness of its own.
//
// A [Core] is the mind of one board. Time comes in as a value, messages come in
// through [Core.Step], and everything else that can happen to a board has a
// method of its own: its link comes or goes ([Core.Link]), a deadline arrives
// ([Core.Wake]), a probe of the address ends ([Core.Probed]), a person wants it
// to hand over ([Core.Resign]), the process is asked to end ([Core.Stop]). Each
// returns what the owner must now do, in this order: send a message, take or
// release the floating address, probe it, tell people. The owner asks
// [Core.Deadline] when to call [Core.Wake] next. That is all. The daemon, the
// simulator and the demo run this very core; after etcd-io/raft.
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
// Every change of role or leader passes through one of the doors in role.go,
// with one reason. The doors are the only places where the address is taken or
// released.
//
// # What is shared and what an algorithm brings
//
// The core keeps the roster, the ranks, the terms, the failure detector, the
// leader's heartbeats, the handover, the healing of partitions and the doubt of
// a board that overslept. An algorithm says who speaks up when the leader is gone
// and what makes it the next one. Each opens with its paper, what it assumes, its
// steps, its messages, its cost, and what is ours in it:
//
//	heir.go        the default, which asks before it believes
//	bully.go       Garcia-Molina 1982
//	score.go       the same over an agreed measure of importance (measure.go)
//	modified.go    Kuang and others: one election instead of many
//	candidates.go  Murshed and Allen 2012: only the upper half is asked
//	minid.go       Kabashi and others: the smallest id, which is known beforehand
//	agents.go      Li, Zhao and Wang: agreement on whom to trust (agents_trust.go),
//	               and a judge who names the leader (agents_judge.go)
//
// What candidates and minid have in common is in electioneer.go, and what most do
// in plain.go. Any of them runs with any failure detector (detector.go): ask.go,
// fixed.go and nfde.go. docs/algorithms.md compares them.
//
// # Times
//
// H is the heartbeat interval, G = max(4 ms, H/10) the grace: no board takes
// over sooner than G after the moment at which a heartbeat was due. A leader whose
// loop is late by less has nothing to fear, or, where a lease is watched over, by less
// than three quarters of it.
package election
