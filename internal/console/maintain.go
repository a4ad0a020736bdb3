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

// MaxTryBytes bounds a TryRequest. A configuration file has 64 KiB at most, and each byte may take six in JSON.
const MaxTryBytes = 512 << 10

// TryRequest is the body of POST /v1/try.
type TryRequest struct {
	File   string `json:"file"`   // whose checks are tried
	Config string `json:"config"` // what that file says
}

// Tried is what the checks of a TryRequest have come to, in their order.
type Tried struct {
	Checks []TriedCheck `json:"checks"`
}

// TriedCheck is what one of them has come to.
type TriedCheck struct {
	NameText string `json:"name_text"` // what it looks at
	Passing  bool   `json:"passing"`
	Text     string `json:"text"` // why it fails; "" if it passes
}
