// Package daemon is a running board. It connects the election with the wire, the
// address, the light, systemd and the control socket.
//
// One loop owns everything that decides. It handles one event at a time: a packet, a
// change of the link, a deadline, a request. It carries out what the core returns, in
// order, before it handles the next event. Work that may take long or block runs
// beside the loop as a task, and reports to it: the readers of the sockets, the watch
// over links and addresses, the LED, the control socket, a probe.
//
// The daemon uses the machine through a [Platform] only. So the demo can run five
// daemons in one process on loopback, and the tests need no machine.
package daemon
