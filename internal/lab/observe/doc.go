// Package observe watches a cluster from outside.
//
// An [Asker] is a client that asks all the time who answers at the floating address. An
// [Answerer] is the service on each board that answers it. [Holders] record which boards have
// the address. A [Report] and a [Timeline] put both together.
//
// The package knows nothing of the boards. The code that builds them opens the sockets and
// reports who has the address. So the demo on loopback uses the package without root, and a
// LAN of network namespaces or of emulated boards uses it in the same way.
package observe
