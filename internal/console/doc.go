// Package console is how people and programs talk to a running daemon: over the control socket, and over the public socket
// and that of the page, which only answer questions. It has the server, the client, and the text that `topdog status` and
// `topdog trace` print. Both sides speak HTTP and JSON over unix sockets.
//
//	GET  /v1/status   a [Status]
//	GET  /v1/events   a [Transition] per line: the state of the board, and then everything that happens to it
//	GET  /v1/trace    a [Trace]: the steps of the last changes of leader
//	GET  /v1/scene    a [Scene]: what the board was told lately, and what it did; for those who may give commands
//	GET  /v1/keys     [Keys]: which keys the boards accept
//	POST /v1/resign   a [Handover]: who leads now
//	POST /v1/leave    a [Handover], and the daemon ends
//	POST /v1/drain    a [Handover], and the board leaves the lead to others from then on, until /v1/undrain
//	POST /v1/pause    a [Done]: the address stays where it is, until /v1/unpause
//	GET  /v1/groups   the names of the groups of this board
//	POST /v1/keys/reload, /v1/try, and those that end something: see protocol.go
//
// Every path takes ?group=NAME, which a board with several groups needs, except for what concerns the whole board: the keys,
// and the end of the daemon.
//
// If a request fails, the answer is an HTTP status and {"error": "…", "hint": "…"}. The hint says what to do, and may be
// missing.
//
// Only root, the daemon's own user and members of the socket's group may connect to the control socket and give the board
// commands. The kernel refuses everybody else. On the public socket everybody may ask how the board is. The page asks over a
// third socket, so that no user of the board can keep the page from an answer, nor can a page that was taken over keep users
// from theirs. Every connection carries one request.
//
// Clients cost the daemon little, whatever they do. A [limiter] for each socket bounds how fast connections are
// accepted, how fast each user is answered, and how many connections each may have, so that no user keeps the others
// out. An answer is made once for all clients who ask at the same time ([Cache]). The threads that do this have the same
// priority as all others, because Go's garbage collector stops all threads and waits for each. With eight busy programs on
// two processors, one thread at nice 19 in a process at nice -10 made such a stop last 330 ms instead of 0.03 ms (medians).
//
// The daemon has a [Server] with a [Backend] behind it, and its clients a [Client]. The package knows nothing of elections
// and networks: internal/daemon fills in the values, and cmd/topdog prints them with [WriteStatus] and [WriteTrace].
//
//	status.go, event.go, trace.go, report.go   the answers, and the text of the last three
//	protocol.go                                requests, other answers, and errors
//	client.go, client_stream.go                the client
//	server.go, handler.go                      the server, and what it does for each path
//	groups.go                                  which group a request is about
//	share.go                                   what the server shares with internal/page: Transitions, Stream, Cache
//	limiter.go, socket.go                      who may connect, and how often
//	verdict.go, text_status.go, text_boards.go the text of a status
//	text_layout.go                             lines, columns, and units
package console
