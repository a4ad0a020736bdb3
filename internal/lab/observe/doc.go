// Package observe watches a cluster from outside, as its users and a spectator do.
//
// An [Asker] is a client that keeps asking who answers at the floating address, and an
// [Answerer] is the service on each board that tells it. [Holders] record which boards have
// the address. What both have seen is read as a [Report] and as a [Timeline].
//
// The package knows nothing of the boards: whoever builds them opens the sockets and says who
// has the address. So the demo on loopback uses it without root, and a LAN of network
// namespaces or of emulated boards in the same way.
package observe
