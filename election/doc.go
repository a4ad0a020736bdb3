// Package election decides who leads. It is pure: it has no clock, no socket,
// no goroutine, no logger and no randomness of its own.
//
// A [Core] decides for one board. Time goes in as a value, and so do messages ([Core.Step]).
// Every other event has a method of its own: the link comes or goes ([Core.Link]), a deadline
// arrives ([Core.Wake]), a probe of the address ends ([Core.Probed]), the LAN answers
// ([Core.Evidence], [Core.AddressAnswered]), a person asks for a handover ([Core.Resign]), the
// process is asked to end ([Core.Stop]). Each method returns effects, which its owner carries
// out in their order: send a message, acquire or release the floating address, probe it, ask
// the LAN, tell people. Package election/steps says in which steps. [Core.Deadline] says when to call
// [Core.Wake] next. The daemon, the simulator and the explorer run the same core, and take the same steps. The shape is that of etcd-io/raft.
//
// # Where things are
//
// Four packages below this one are asked, and return values. They know no core:
//
//	clock    points in time, and deadlines
//	roster   who is there, and in which order boards come
//	silence  when a leader is late: failure detectors, and the grace of the group
//	lease    until when a board may lead: leases, promises, majorities
//
// The files of this package read from the bottom up. config.go has what goes in, and effect.go what comes out. state.go has
// all that a core remembers; rank.go is asked about it; tell.go has what a board says. role.go has the roles
// and the reasons for changing them, and become.go the one function that does. Then come the roles, each above those to
// which it leads: follower.go, handover.go, leader.go, conflict.go, candidate.go. lease.go has until when a leader may
// hold the address, watch.go how the board that comes next watches it, and pause.go what keeps the address where it is. hear.go receives messages, and core.go and commands.go
// have the calls of the owner. heir.go and strict.go, with votes.go, are the two algorithms of topdog. Those of the papers
// are in package literature: algorithm.go has what they are told, and board.go what they may do.
//
// # Roles
//
//	Isolated   the link is down; the board neither hears nor speaks
//	Listener   the link has just come up; the board hears before it speaks
//	Follower   follows a leader, or waits for the one that was announced
//	Candidate  suspects the leader and asks; or has found none and is about to claim
//	Leader     holds the address
//	Barred     stays out, because another live board has the same id, or because
//	           the group runs another algorithm or speaks another version of the protocol
//
// Each role has a door: the one function through which a board comes to have it (becomeFollower,
// say). Every door has one reason, and all doors go through become in become.go. That function
// refuses changes that make no sense, ends all that belonged to the role before, and releases
// the address when a leader becomes something else.
//
// # Rules
//
//   - Only becomeLeader leads to the lead, and only a leader acquires the address (acquire in leader.go). The term
//     grows with every claim, and a follower follows the leader of the latest term.
//   - A candidate claims when nobody has objected and nothing is in the way (candidate.go): at a cold start
//     the address was probed; later it does not answer any more after the lease of the silent leader; and this board
//     has received something since its first question, unless it has never heard anything but that leader.
//     On total silence nobody claims: the others wait once for a candidate that hears nothing.
//   - A board that the leader names in its RESIGN claims as soon as it has read what has arrived behind it: it may have
//     stood still, and another board may have been named since. The leader releases the address first (handover.go).
//     A board that the judge of the algorithm agents names claims at once. With votes, whoever would claim asks the
//     voters first (lead in leader.go).
//   - Of two leaders that hear each other, the fitter one stays, and of two that are as fit the one that more boards have
//     followed since the younger of the two began to lead. The leader of the lower term decides, and the other one obeys.
//     Where the highest rank always leads, the lower one releases the address at once, and the higher one proclaims
//     itself in a term above both (conflict.go). With votes the leader of the lower term lets go (strict.go).
//   - A leader that misses the HELLOs of all its followers asks them and the LAN. If nothing at all arrives, it is deaf
//     and hands over (askHearing in leader.go).
//   - What is not sent all the time also goes by broadcast, and the first question goes to the floating address too, so
//     that a switch that loses multicast deposes nobody. A board that hears its leader, but not by multicast, says so.
//     Then heartbeats and HELLOs are broadcast as well (tell.go).
//   - A board that was not running while something was due has missed messages. A follower then gives its leader a fresh
//     interval, and a leader yields to any later term (suspended in core.go).
//   - A board says in every message how fit it is to lead. That comes before priority, id and score in all algorithms. An
//     unfit leader hands over to a fitter board, and only a board that passes takes the lead from another (rank.go).
//
// A follower that misses a heartbeat does nothing at first. Its deadline comes suspectAfter after the last heartbeat, and
// later by its turn delay (awaitTurn in follower.go). Then the core tells the algorithm that it is this board's turn. heir
// becomes a candidate and asks for the leader, several times within the grace (heir.go). One answer of the leader, or
// of another follower that has heard it, makes it a follower again. If none comes, it claims. The boards behind it in the
// succession see its ELECTION and back off.
//
// The board that comes next has another way to suspect the leader (watch.go): its owner asks the leader's kernel for the floating
// address many times between two heartbeats. If answers fail to come, the suspicion begins then, and all else is the same.
//
// # What is shared and what an algorithm brings
//
// The core keeps the roster, the ranks, the terms, the failure detector, the leader's
// heartbeats, the HELLOs and the handover, and it settles which of two leaders stays. The header
// of a message says something of its sender, whatever the message is about; hear.go says what
// that means to each role, and passes on what it is about.
//
// An [Algorithm] decides which board claims when the leader is gone, and when it may. The core tells it
// of each [Event] that concerns it. The algorithms of the papers read and act through a [Board]
// alone. Any algorithm runs with any failure detector. docs/algorithms.md compares them.
//
// # Votes
//
// The algorithm strict is heir with votes: at no instant do two boards hold the address,
// whatever the network, the processes and the boards do. It rests on three things.
//
//   - A voter has one promise at a time, which binds it for H + G from the receipt of a
//     heartbeat (it answers with SUPPORT) or of a request (GRANT). The promise belongs to no
//     role. Its end never moves back, except on the word of the board that has it: a RESIGN
//     or a withdrawal that was sent after the message on which the promise rests (lease.Promise).
//   - A board leads with the promises of a majority of the voters. Its lease is counted from
//     before it sent what the majority has answered. So the lease ends before their promises do,
//     and before anybody else can have a majority (lease.Support).
//   - Nobody counts what a voter has promised in a former life, and the voter promises nothing
//     until all of that is over (newVoting).
//
// The owner must read the time of Step after the message was received, and the time of all
// calls before it sends what they return. Two things are trusted: voters have ids of their own (a
// clone or a snapshot of a machine has not), and clocks are off by 1 % at most
// (Core.ClockTrusted).
//
// Two lists of voters have majorities of their own, so everything that voters say carries a hash
// of the list. Change one voter at a time: then the old majorities and the new ones have a voter
// in common, and a voter counts with one list at a time. A lower interval lowers how long a voter
// is silent after its start; wait for the former time before you start that voter again.
//
// # Times
//
// Every waiting time has one name, by which it is found in the code. n is the number of live
// boards, p this board's place in the succession from 0, k how often a suspect is asked, T the
// time limit of the papers.
//
//	H = Interval         10 ms to 10 s, else 100 ms     between two heartbeats (config.go)
//	G = Grace            max(4 ms, H/10) at first       no takeover is sooner than G after a heartbeat was due, and
//	                     patience at most               a leader that is later than G doubts itself;
//	                                                    it is learned, and the leader announces it (package silence)
//	patience             5 H, at least 250 ms           a longer silence is no mistake of those who take over
//
// Suspicion. The detectors are ask, fixed and nfd-e.
//
//	margin               ask: learned, G/4 to H/2       how late a heartbeat may be
//	suspectAfter         ask: H + margin                since the last heartbeat; H more for each loss that is overlooked
//	                     fixed: 3H + G                  two losses in a row are harmless, as with VRRP
//	                     nfd-e: H + α, α = H + H/4      counted from when the last heartbeat was expected; G at least
//	Questions.Spacing    ask: round trip, 1 ms to H/2   most of what is sent is needed
//	Questions.Duration   ask: (k-1)·Spacing + Within    k follows from the loss: one mistake a day; a grace that was
//	                                                    learned is spent on more questions
//	                     fixed, nfd-e: H                one question
//	T = AnswerTimeout    Questions.Duration             a living board answers within it
//
// Succession.
//
//	TurnDelay            p · turnStep                   a board acts only if those before it do not
//	turnStep             heir: Duration + 2·Spacing + G a board asks as often as it must, and is heard;
//	                                                    H at least where 2 % of the heartbeats are lost
//	                     candidates, minid: G           a COORDINATOR is heard
//	                     others: 0                      whoever notices acts
//	backOff              heir: max(turnStep, H/2)       several questions of the board that asks may be lost
//	                     candidates, minid: T + H       the election of the other board is over
//	ElectionDuration     T; modified: 2T; score: 2 s;   from the suspicion to the COORDINATOR
//	                     agents: H
//	CoordinatorDue       2T + H; score: 2 s + 3T        the board that has taken over an election has died
//
//	Config.Watch         10 ms, H/2 at most             between two questions to the address of the leader
//	Earliest             G after a heartbeat was due,   nobody takes over before
//	                     or a watched address was missed
//	watching.pause       1 s, doubles to 1 min          the address did not answer, and the leader was alive
//
//	leaseEnd             ask: H + ¾ G; others: when     since the last heartbeat: the leader's address is silent
//	                     the leader is suspected        from then on, and is asked
//	RoundTripBound       learned, 1 ms to H/2, 5 ms     it has answered by then if it answers at all
//	                     where nobody measures
//	askAgain             H/5; H after AddressOutlives,  a candidate that may not claim asks on
//	                     or without evidence
//	AddressOutlives      2.25 s                         the lifetime of an address (netio.DefaultLifetime, 1 s),
//	                                                    and what the kernel takes to remove it
//
// Start.
//
//	listenWindow         ask: 2½ H; others: also        a dead leader is missed, and its successor elected
//	                     suspectAfter + ElectionDuration + H/2 at least
//	listening.query      H/2; at least 1 s while a      five questions at 40 % loss miss a leader once in
//	                     foreign machine has the address  a thousand times
//	coldStart.retry      1 s, doubles to 10 s           the kernel removes a frozen holder's address within 2.5 s
//	TakeInUseAfter       10 s                           a machine that has the address for longer is ignored, if that is wished
//
// Leader.
//
//	RoundTripMin         1 ms                           between two replies: one multicast answers all who ask
//	lease                ask: H + ¾ G; others: also     a quarter of G is left to release the address
//	                     suspectAfter - H/2 at least
//	lapse.over           RoundTripBound                 a leader whose heartbeat comes after its lease has
//	                                                    ended would have heard whoever has claimed
//	doubtUntil           2H                             a leader that was late yields to any later term; one that
//	                                                    was later than H and than G releases the address
//	look                 G, and half as much again      until H is over a new leader tells the one that it has replaced
//	laterLook            40 ms, 2/5 H at least          then it goes on for 10 s, but not with votes
//	following.preempt    configured, else 20 H; and     a board that comes and goes must not move the address
//	                     p · max(H/4, 10 ms), where     of those that want the lead, the first in rank asks first
//	                     H/4 is 500 ms at most
//	measureInterval      max(H, 50 ms) four times,      a candidate knows how long an answer takes
//	                     then 10 s
//
//	hearing              HelloInterval + max(H, 100 ms) since the newest message of a follower; then it asks
//	                                                    four times within H, and is deaf. With up to 8 boards
//	                                                    that takes 1 s + 3 H at most
//
//	yield                0; 20 H, doubles to 160 H      an unfit leader to which nobody answers takes the lead back,
//	                                                    and must not give it away all the time
//
// Handover.
//
//	handover.pause       5 ms to H/4, doubles           a lost RESIGN would cost H
//	successorTimeout     H/4, 10 ms to 500 ms           then another board is named, three at most, within successorFirst
//	successorFirst       H/2                            the others leave the lead to the board that was named
//	listenWindow         as above                       the board that has resigned is the last one to claim
//	resignSettles        25 ms                          the pre-signed RESIGN is heard before anything else. A board that alone
//	                                                    may lead, because of a pause, asks then
//
// Votes (strict).
//
//	Promised             H + G                          from receipt; nobody else has this voter's support
//	Leased               H + ¾ G                        from before it was sent; 0.98 (H + G) at most, so that clocks
//	                                                    that are 1 % off do not make it longer than a promise
//	PromiseMax           H + patience                   the longest promise; a voter makes none for so long after its start
//	roundTrip            learned, 1 ms to H/2           between two repetitions of a heartbeat that no majority has
//	                                                    acknowledged; G/4 at least when the lease is over
//	request.repeat       round trip, doubles to H/4,    between two requests of a candidate
//	                     and to H after PromiseMax
//	letGoIntervals       5H, at least 500 ms            a leader that no majority acknowledges may be deaf
//	TwiceFor             5 s                            a voter that was seen in two incarnations at once does not count
//
// Roster and conflicts.
//
//	helloInterval        max(1 s, n · 125 ms)           at most 8 packets/s at any size
//	HelloLosses          5 of them                      silent for so long is dead: at 40 % loss once in a hundred times
//	multicastMissed      10 H                           a leader that is heard, and not by multicast, is not reached by it
//	barredFor            5 s                            a conflict that was not heard of for so long is over
//	tellAgeAfter         10 ms, then once in H          two boards with one id compare their ages until one of them leaves
//	noticeInterval       1 min                          between two equal notices
//
// What one algorithm alone waits for is explained in its file.
package election
