// Package daemon is a running board. It connects the election with the wire, the address, the light, systemd and the
// control socket.
//
// One loop owns everything that decides (loop.go). It handles one event at a time: a packet, a change of the link, a timer,
// a request. Before each event it checks the dead man's switch. It hands the event to the core, carries out the effects
// that the core returns in the steps of package election/steps (effects.go), and settles what is left to do. Once a second it looks after what no event
// tells. Work that may take long or block runs outside of the loop as a task, and reports to it (tasks.go): the readers of
// the sockets, the watch over links and addresses, the LED, the control socket, a probe.
//
// Every other piece of state has one owner, which has its own files:
//
//	link      the interface: finding it, watching it, the board's own address on it
//	group     the sockets, who this board is, the guard; packets are sent and judged in group_packets.go, and boards.go
//	          has what is known of the other boards
//	lan       who is asked by ARP while there is a doubt, and what was heard since
//	address   the floating address: holding it, and in announce.go announcing, defending and probing it
//	lease     the right to answer for the address, and what enforces it: the fence in the kernel, and the holder, which
//	          releases the address when this process cannot
//	checks    the process that runs the checks and the score command, and the resulting grade and score
//	reporter  the log, systemd, the problems and the history of topdog status
//	light     the LED
//	trace     the moments of the last changes of role, for topdog trace
//	tasks     what runs outside of the loop
//	timer     what wakes the loop
//
// An owner calls methods of another one, and touches none of its fields.
//
// All packets leave in one place, group.transmit. The address is acquired in one place, address.acquire: when the core says
// so, and again for as long as the core wants it held. Once the dead man's switch has fired, the daemon neither acquires
// the address nor says that it leads, until the core knows.
//
// The daemon uses the machine through a [Platform] only. So the demo can run five daemons in one process on loopback, and
// the tests need no machine.
package daemon
