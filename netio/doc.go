// Package netio is everything in topdog that touches the network: datagrams,
// the state of links and addresses, the floating IP, and the announcements
// that tell the neighbours where the floating IP is now. It knows nothing of
// elections; it carries bytes and holds addresses for whoever decides.
//
//   - [Conn] is the pair of UDP sockets of one board: one bound to the group's
//     multicast address, one to the board's own address. Nothing from beyond
//     the link gets through (GTSM, RFC 5082), and neither sending nor
//     receiving allocates memory.
//   - [Watch] reports the group's interface and every IPv4 address of the host
//     whenever one of them changes. [FindInterface] names the interface that a
//     floating IP belongs to.
//   - [FloatingIP] holds the floating addresses in such a way that they do not
//     outlive the process, whether it is killed or frozen. docs/address.md has
//     the measurements behind the choice.
//   - [Announcer] speaks ARP as RFC 5227 wants it: probe, announce, and listen
//     for rivals. [AnnouncementDelay] says when to announce again.
//   - [Now] is the one clock of the daemon.
//
// Whatever opens a socket, a device or a file does so in the network namespace of the
// calling thread. That is how the lab runs several boards in one process.
//
// The package never logs. What it has to say it says through errors, callbacks
// and counters, and the wording is meant to be shown to a person as it is.
package netio
