package console

// DrainRequest is the body of POST /v1/drain.
type DrainRequest struct {
	ForNs int64 `json:"for_ns"` // for so long while the board is awake, and not beyond its next boot; 0: until somebody ends it
	Force bool  `json:"force"`  // also if no other board passes
}

// PauseRequest is the body of POST /v1/pause.
type PauseRequest struct {
	ForNs int64 `json:"for_ns"` // for so long
}

// Done is the answer to a request after which there is nothing to tell but that it was done.
type Done struct {
	Text string `json:"text"` // "moves are paused for 1h0m0s: only pi2 (192.168.1.12) may lead"
}
