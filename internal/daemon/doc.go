// Package daemon is a running board: it ties the election to the wire, the
// address, the light, systemd and the people who ask.
//
// One loop owns everything that decides: it takes in one thing at a time (a
// packet, a change of the link, a deadline, a request) and carries out what the
// core answers, in order, before it looks at the next. What may take long or
// block runs beside it as a task and reports back: the readers of the sockets,
// the watch over links and addresses, the LED, the control socket, a probe.
//
// What the node touches of the machine stands behind [Platform], so that
// the demo can run five nodes in one process on loopback, and the tests can do
// without a machine.
package daemon
