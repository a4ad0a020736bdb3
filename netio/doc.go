// Package netio is everything in topdog that touches the network: datagrams, the
// state of links and addresses, the floating IP, and the announcements that tell the
// neighbours where the floating IP is now. It knows nothing of elections: it carries
// bytes and holds addresses, and others decide.
//
//   - [Conn] is the UDP sockets of one board: one for each [Path], the kind of address that a
//     datagram is sent to. Nothing from beyond the link gets through (GTSM, RFC 5082), and
//     neither sending nor receiving allocates memory.
//   - [Watch] reports the group's interface and every address of the host
//     whenever one of them changes. [FindInterface] names the interface that a
//     floating IP belongs to.
//   - [FloatingIP] holds the floating addresses by a [HoldMethod], so that they do
//     not outlive the process, whether it is killed or frozen. docs/address.md has
//     the measurements behind the choice. [RemoveLeftovers] cleans up after it.
//   - [Holder] is the privileged process of a board. It has the floating addresses, the
//     announcer, the sockets, and [HeldFence]: the lease of the leader, and programs in the kernel
//     that drop packets to the addresses when the lease is over. It is also the dead
//     man's switch: it removes the addresses at once when the daemon is killed or frozen.
//   - [Announcer] speaks ARP as RFC 5227 wants it, and Neighbor Discovery (RFC 4861) for addresses of IPv6: probe, announce,
//     and listen for rivals. It answers solicitations, too, since the kernel does not. It repeats the announcements by itself while the lease lasts. It also asks
//     single hosts whether they are there, or still have a floating address, asks the host that has
//     one again and again ([AddressWatch]), and counts the frames of other hosts while a board doubts that it hears any.
//   - [Neighbours] are what the kernel knows of the hosts on the link.
//   - [Now] is the clock that the daemon, the holder and the kernel share, and
//     a [Timer] wakes the daemon's loop.
//
// Whatever opens a socket, a device or a file does so in the network namespace of the
// calling thread. That is how the lab runs several boards in one process.
//
// The package does not log, but for a holder that has nobody to tell, which writes to standard error. It reports
// everything else by errors, callbacks and counters. The texts of its errors are written to be shown to people.
package netio
