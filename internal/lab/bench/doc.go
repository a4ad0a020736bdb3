// Package bench measures topdog side by side with what people would install
// instead: keepalived (VRRP) and UCarp (CARP). It builds LANs out of network
// namespaces, runs each program on their boards, makes the leader fail, and looks
// from the outside: by a client that asks at the address all the time, by the
// kernels' own reports of who has the address, and by the packets on the wire.
//
//	go run ./scripts/bench             the quick form, two to three minutes
//	go run ./scripts/bench --long      everything, for docs/benchmarks.md
//
// It needs root, the go command (topdog is built as it is released), and the
// packages keepalived and ucarp; one that is missing is skipped and named.
//
// A plan says what is measured, a session measures it part by part (failures,
// cold starts, steady state, loss), and package report says what came of it. A
// system is one program in one setting; a rig is a LAN whose boards run it; an
// event is something that is done to its leader; a trial is one run of an event.
package bench
