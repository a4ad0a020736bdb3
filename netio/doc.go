// Package netio is everything in topdog that touches the network: datagrams, the
// state of links and addresses, the floating IP, and the announcements that tell the
// neighbours where the floating IP is now. It knows nothing of elections: it carries
// bytes and holds addresses, and others decide.
//
//   - [Conn] is the UDP sockets of one board: one for each [Path] by which a datagram
//     may come. Nothing from beyond the link gets through (GTSM, RFC 5082), and
//     neither sending nor receiving allocates memory.
//   - [Watch] reports the group's interface and every IPv4 address of the host
//     whenever one of them changes. [FindInterface] names the interface that a
//     floating IP belongs to.
//   - [FloatingIP] holds the floating addresses by a [HoldMethod], so that they do
//     not outlive the process, whether it is killed or frozen. docs/address.md has
//     the measurements behind the choice. [RemoveLeftovers] cleans up after it.
//   - [Holder] is the process of a board that has all rights: it has the floating addresses, the
//     announcer, the frame counter, the sockets, and [HeldFence], which is the lease of the leader and
//     programs in the kernel that drop what is for the addresses when it is over. It is the dead
//     man's switch as well: it removes the addresses at once when the daemon is killed or frozen.
//   - [Announcer] speaks ARP as RFC 5227 wants it: probe, announce, and listen
//     for rivals. [AnnouncementDelay] says when to announce again. It also asks
//     single hosts whether they are there, or still have a floating address, and
//     counts the frames of other hosts while a board doubts that it hears any.
//   - [NeighbourTable] is what the kernel knows of the hosts on the link.
//   - [Now] is the one clock of the daemon, which the kernel and the holder share, and
//     a [Timer] wakes its loop.
//
// Whatever opens a socket, a device or a file does so in the network namespace of the
// calling thread. That is how the lab runs several boards in one process.
//
// The package never logs. It tells everything by errors, callbacks and counters. The
// texts are meant to be shown to people as they are.
package netio
