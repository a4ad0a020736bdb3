// Package page serves what the daemon of this board says to browsers and programs on the LAN:
// `topdog page`. It is a process of its own, so that no browser comes near the election.
//
// It follows one stream of the daemon ([console.Client.Follow]), and asks for the status only when
// somebody wants it: one request at a time for all ([console.Cache]). What nobody looks at costs
// nothing but the stream.
//
//	source.go    what the daemon has said last, and asking it anew
//	verdict.go   /leader, /follower, /fit and /healthz
//	events.go    /v1/events: the one stream, for several readers
//	history.go   /v1/history: what was seen since this process began
//	metrics.go   /metrics: the names; metrics_values.go has the values
//	page.go      following the daemon, the port, and what each path answers
//
// Nothing here acts on the board. What acts is the daemon's control socket alone.
package page
