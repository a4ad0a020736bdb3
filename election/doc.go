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
// Each role has a file with its state, its deadlines and its door: the one function
// through which a board comes to have that role (isolated.go, listener.go, follower.go,
// candidate.go, leader.go, barred.go). Every door has one reason, and all doors go
// through become in role.go. It lists the changes that make sense, ends all that
// belonged to the role before, and releases the address when a leader becomes something else.
//
// # Rules
//
//   - Only a leader acquires the address (acquire in leader.go), and becomeLeader is the
//     only door to the lead. A board goes through it when nobody has objected to its
//     candidacy (claim in candidate.go), when the leader before has named it in its
//     RESIGN (handover.go), or when the judge of the algorithm agents has named it.
//   - The term grows with every claim, and a follower follows the leader of the latest term.
//   - Of two leaders that hear each other, the lower rank releases the address at once. The other one
//     proclaims itself anew, in a term above both (rival.go).
//   - At a cold start the address is probed before the first claim, since there is no hurry.
//   - A board that was not running while something was due doubts itself before it accuses
//     anybody (suspended in core.go).
//   - Who hands over releases the address first and names a successor then (handover.go).
//
// A follower that misses a heartbeat does nothing at first: its deadline for that
// is suspectAfter behind the last one, and later by its turn delay (awaitTurn in follower.go).
// When it comes, the algorithm has its turn. heir becomes a candidate and asks for
// the leader, several times within the grace (heir.go). One answer of the leader, or
// of another follower that has heard it, makes it a follower again. If none comes, it claims.
// The boards behind it in the succession see its ELECTION and back off.
//
// # What is shared and what an algorithm brings
//
// The core keeps the roster (roster.go), the ranks, the terms, the failure detector, the
// leader's heartbeats, the HELLOs and the handover, and it heals partitions. step.go
// says what becomes of a message: what its header says of the sender depends on the role
// of this board, and what it is about on its type.
//
// An [Algorithm] decides which board claims when the leader is gone, and when it
// may. It is made by the New of its [Definition], and reads and acts through a
// [Board]. heir.go has the default, which asks before it decides. Package literature
// has the others. Any algorithm runs with any failure detector: ask.go, fixed.go and
// nfde.go over what all of them observe (observed.go). docs/algorithms.md compares them.
//
// # Times
//
// Every waiting time has one name. n is the number of live boards, k how often a suspect
// is asked, p the place in the succession, from 0.
//
//	H, interval             10 ms to 10 s, 100 ms          between two heartbeats; bounds.go
//	G, grace                max(4 ms, H/10)                no takeover is sooner than G after a heartbeat was due, and
//	                                                       a leader that is later than G doubts itself; detector.go
//
//	Suspicion. The detectors are ask, fixed and nfd-e.
//	margin                  ask: learned, G/4 to H/2       how late a heartbeat may be
//	suspectAfter            ask: H + margin                since the last heartbeat; longer by H for every loss that is overlooked
//	                        fixed: 3H + G                  two losses in a row are harmless, as with VRRP
//	                        nfd-e: H + α, α = H + H/4      counted from when the last heartbeat was expected
//	spacing                 ask: round trip, 1 ms to H/2   between two questions: most of what is sent is needed
//	duration of questions   ask: (k-1)·spacing + within    k follows from the loss: one mistake a day
//	                        fixed, nfd-e: H                one question
//	T, answer timeout       the duration of the questions  the time limit of the papers
//
//	Succession
//	turn delay              p · turn step                  later boards act only if earlier ones do not
//	turn step               heir: duration + 2·spacing + G an earlier board asks as often as it must, and is heard; H at least when 2 % are lost
//	                        candidates, minid: G           a COORDINATOR is heard
//	                        others: 0                      whoever notices acts
//	back-off                heir: max(turn step, H/2)      several questions of the board that asks may be lost
//	                        candidates, minid: T + H       its election is over by then
//	election duration       heir, bully, candidates, minid: T; modified: 2T; score: 2 s; agents: H
//	coordinator due         2T + H; score: 2 s + 3T        then the board that has taken an election over has died
//	(those of one algorithm alone are explained in its file)
//
//	Start
//	listen window           ask: 2½ H; else the larger of  a dead leader is missed, and its successor elected
//	                        that and suspectAfter + election duration + H/2
//	query interval          H/2, 1 s while a foreign       five questions at 40 % loss miss a leader once in a thousand times
//	                        machine has the address
//	probe retry             1 s, doubles to 10 s           the kernel removes a frozen holder's address within 2.5 s
//
//	Leader
//	reply limit             1 ms                           one multicast answers all who ask at the same time
//	lease                   H + ¾ G with ask, else at      a quarter of G is left to release the address; lease.go
//	                        least suspectAfter - H/2
//	doubt                   2H                             yields to any later term; later than H itself, it releases the address
//	preempt delay           20 H                           a board that comes and goes must not drag the address with it
//	round trip measurement  max(H, 50 ms) four times,      by the three boards that come next
//	                        then 10 s
//
//	Handover
//	resign repeat           5 ms to H/4, doubles           a lost RESIGN would cost H
//	successor timeout       H/4, from 10 ms to 500 ms      then another one is named, three at most
//	successor first         H/2                            the others leave it to the one that was named
//	resigned last           listen window                  who resigned is the last one to claim
//	resign settles          25 ms                          after a lease has expired, the pre-signed RESIGN is heard first
//
//	Roster
//	hello interval          max(1 s, n · 125 ms)           at most 8 packets/s at any size
//	silent for 5 of them    counts as dead                 at 40 % loss five are lost once in a hundred times
//	barred                  5 s                            a conflict is over when nothing was heard of it for so long
//	notice interval         1 min                          the same notice is not given more often
package election
