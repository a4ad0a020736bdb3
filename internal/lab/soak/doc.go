// Package soak does to a group of boards, for hours, whatever can happen to one: cables are
// pulled, ports hear nothing, processes stand still or die, the switch passes nothing, the LAN
// falls in two. It is what `scripts/soak` runs, on a LAN of network namespaces.
//
// One seed decides which faults come, on which board, and how long they last. Which board leads
// when a fault comes is up to the group, so two runs with one seed differ in what they meet, and
// not in what they try.
//
// The group has an IPv4 and an IPv6 address, and the worse of the two counts.
//
// Three judges look on. The kernels of the boards report every address that comes or goes: that
// counts the moves. A client asks at each address, as a user does: that is the outage. A place
// asks every single board whether it answers for an address, by ARP or Neighbor Discovery and by ICMP, whatever the
// client's kernel believes: a board with a closed fence has the address and does not answer.
// Two boards count as two holders only if the later one had answered before a question was sent
// that the former one answered still, so that no frame under way is taken for a holder.
//
// A fourth judge reads what the boards have traced, and holds it against the rules of docs/spec (rules.go).
//
// In the default mode a place is a machine at the switch, and what it reaches, each client there
// would reach; when the LAN falls in two there is one on each side. Each kind of fault has its
// own bounds. If a trial has too many moves and this machine was late ([netns.Machine]), the trial
// is inconclusive, and the line about it says what was late. In the strict mode each board is asked
// at its own port, past all faults of the switch, and there is one bound: no instant with two boards
// that answer.
package soak
