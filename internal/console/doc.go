// Package console is the control socket, and the public one beside it: how people and programs talk to a running
// daemon. It has a server, a client, and the text that `topdog status` and
// `topdog trace` print. They speak HTTP and JSON over unix sockets.
//
//	GET  /v1/status   a [Status]
//	GET  /v1/events   a [Transition] per line: how the board is, and then all that happens
//	GET  /v1/trace    a [Trace]: the steps of the last changes of leader
//	POST /v1/resign   a [Handover]: who leads now
//	POST /v1/leave    likewise, and the daemon ends
//	POST /v1/drain    likewise, and the board leaves the lead to others from then on; undrain ends that
//	POST /v1/pause    a [Done]: the address stays where it is; unpause ends that
//
// The answer to a request that failed is an HTTP status and {"error": "…", "hint":
// "…"}. The hint says what to do about the error, and may be missing.
//
// Root, the daemon's own user and members of the socket's group may connect to the control socket and have the board
// do something. The kernel tells who the caller is (SO_PEERCRED, see unix(7)). The page may connect to it too, and only
// look. Everybody may connect to the public socket, and look. Every connection carries one request.
//
// Clients cost the daemon little, whatever they do. A [limiter] for each socket bounds how fast connections are
// accepted, how fast each user is answered, and how many connections each may have, so that no user keeps the others
// out. An answer is made once for all who ask at the same time (cache.go). No thread has a lower priority for that:
// Go's collector stops all threads, and waits for each. Beside eight programs that compute on two processors, one
// thread at nice 19 in a process at nice -10 made such a stop last 330 ms instead of 0.03 (medians).
//
// The daemon side is a [Server] with a [Backend] behind it, the other side a
// [Client]. The package knows nothing of elections and networks: internal/daemon
// fills the values in, cmd/topdog prints them with [WriteStatus] and [WriteTrace].
//
// The types are in status.go, event.go, trace.go, report.go and protocol.go; event.go, trace.go and report.go have the
// text of theirs beside them, the files that begin with text that of the status.
package console
