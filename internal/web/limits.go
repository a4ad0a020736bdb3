package web

import "time"

// Limits keep clients, broken or hostile ones included, from costing more than a small board can
// spare.
type Limits struct {
	Connections int // at the same time
	PerAddress  int // of those, from one address

	HeaderBytes int   // of a request; net/http adds 4 KiB of its own
	bodyBytes   int64 // of a request that may have a body

	Request time.Duration // for a request to arrive
	Write   time.Duration // for an answer to be accepted by the client
	Idle    time.Duration // between two requests on a connection
	Linger  time.Duration // at the end, for requests in progress
}

// DefaultLimits are those of the product. A browser has up to six connections to a host, and a
// connection costs about 20 kB. Pages ask twice a second, so a client that says nothing for
// 5 s has gone: its board or this one may have died without a word.
var DefaultLimits = Limits{
	Connections: 256,
	PerAddress:  64,
	HeaderBytes: 8 << 10,
	bodyBytes:   4 << 10,
	Request:     2 * time.Second,
	Write:       5 * time.Second,
	Idle:        5 * time.Second,
	Linger:      500 * time.Millisecond,
}
