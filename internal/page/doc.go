// Package page shows the board to browsers and programs on the LAN: `topdog page`. It is a process of its own, so that no
// browser comes near the election.
//
// It follows each group of the daemon by one stream ([console.Client.Follow]), and asks for the status only when somebody
// wants it, once for all who want it ([console.Cache]). A page at which nobody looks costs nothing but the streams.
//
//	groups.go    which groups the daemon has, following them, and which one a request is about
//	source.go    what the daemon says: the last event and the status
//	verdict.go   /leader, /follower, /fit and /healthz
//	events.go    /v1/events: the one stream, for several readers
//	history.go   /v1/history: what was seen since this process began
//	metrics.go   /metrics
//	page.go      what happens to a group, the port, and the paths
//
// Nothing here acts on the board. Only the control socket of the daemon does.
package page
