// Package bench measures topdog side by side with the programs that people would install
// instead: keepalived (VRRP) and UCarp (CARP). It builds LANs of network
// namespaces, runs each program on their boards, and makes the leader fail. It observes
// from outside: by a client that asks at the address all the time, by the kernels'
// own reports of who has the address, and by the packets on the wire.
//
//	go run ./scripts/bench             the quick form, seven to ten minutes
//	go run ./scripts/bench --long      everything, for docs/benchmarks.md
//
// It needs root, the go command (topdog is built as it is released), and the
// packages keepalived and ucarp; for services dnsmasq-base and bind9-dnsutils as well. It skips what a missing one
// is needed for, and names it.
//
// A plan says what is measured. A session measures it part by part: failures, cold starts, steady state, loss, and with
// --parts idle a short interval while nothing happens. The part curve is a session of its own: what speed costs. In the parts service and checks, each board has a real dnsmasq. It
// fails while its board is well, and the client asks it. A system is one program in one setting; systems/ has what its
// boards need. A group is a LAN whose boards run it. An event is a fault of its leader or of the LAN, or a request: a
// scene of events.scene, which a stage plays; what else is measured is a scene of parts.scene.
//
// All that is measured is a line in the format of Go's benchmarks. The tables in tables.txt, the pictures, and what is said
// of the goals in goals.txt are made of these lines.
package bench
