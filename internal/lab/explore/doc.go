// Package explore looks at all that can happen in a small group: two or three boards, one or two
// terms, and a few faults. It is the proof, as far as there is one, that two boards never
// answer for the address at the same time.
//
// # Actors and steps
//
// A board is three actors, each of which goes on when the others stand still (board.go): the
// daemon, the switch, and the kernel with the fence and the sockets. The daemon runs the package
// election of the product. It looks whether its switch has fired, reads the clock, and hands an event to
// the core. The effects are carried out in the steps of package election/steps, which are those of
// internal/daemon: it sends each message, adds and removes the address, sets the timer of the
// switch, swaps the lease word (daemon.go). The switch reads the word, swaps it, removes the address and sends the
// RESIGN (deadman.go, after netio). The kernel answers for the address as long as it is there
// and the fence is open, which is until the clock has passed the lease word. It answers ARP
// requests too (network.go).
//
// The boards may have a second path. Nothing happens to that but to its datagrams; cuts and pulled cables are of the first.
//
// # What is explored
//
// From a group that has settled, time goes on from event to event, as it would if nothing went
// wrong. Before every step something may go wrong instead (fault.go): the one who is about
// to take it stands still, or is killed; the datagram that is about to arrive is lost, held back or
// duplicated; a direction is cut; and so on. What has stopped may go on whenever that could make a
// difference: after each step of a switch, after each board that begins to answer, just before
// and just after the end of the lease, and at some other times. With everywhere it may do so at
// every step of anybody. All combinations of at most so many faults are explored. Such a bound is
// what makes it finite; the idea is from CHESS (Musuvathi and Qadeer, "Iterative context bounding
// for systematic testing of multithreaded programs", PLDI 2007): most mistakes show with very few
// interruptions, if they are the right ones.
//
// The worlds are copied where they part (clone.go), and one that was seen before, with the
// same core, messages, lease and clock, is not explored again (hash.go). A state is known by 64
// bits: among 10⁷ states two fall together by chance once in 400,000 explorations.
//
// Clocks run at the bounds of their drift. Time itself is not explored: a datagram takes the same
// time as every other unless it is late or held, and a step takes a microsecond unless there is a pause.
//
// # Seeded bugs
//
// An explorer that finds nothing proves nothing unless it finds what is there. bug.go lists
// mistakes that can be made on purpose. The tests hold that each of them is found, and print the
// steps that lead to it.
package explore
