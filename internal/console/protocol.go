package console

import (
	"errors"
	"net/http"

	"topdog/internal/web"
)

// The paths. The version in them grows when something changes that old clients would misunderstand. New keys do not count
// as such a change.
const (
	pathStatus  = "/v1/status"
	pathEvents  = "/v1/events"
	pathTrace   = "/v1/trace"
	pathScene   = "/v1/scene"
	pathResign  = "/v1/resign"
	pathLeave   = "/v1/leave"
	pathDrain   = "/v1/drain"
	pathUndrain = "/v1/undrain"
	pathPause   = "/v1/pause"
	pathUnpause = "/v1/unpause"
	pathKeys    = "/v1/keys"
	pathReload  = "/v1/keys/reload"
	pathTry     = "/v1/try"
	pathGroups  = "/v1/groups"
)

// GroupNames is the answer to GET /v1/groups.
type GroupNames struct {
	Groups []string `json:"groups"` // their names, in the order of the configuration
}

// Handover is the answer to POST /v1/resign, /v1/leave and /v1/drain.
type Handover struct {
	Leader     string `json:"leader"` // id of the board that leads now; "" if there is none
	LeaderName string `json:"leader_name"`
	Text       string `json:"text"` // "handed over to pi2 (192.168.1.12)"
}

// Scene is the answer to GET /v1/scene.
type Scene struct {
	Text string `json:"text"` // as package record of election writes it, which topdog sim play reads
}

// DrainRequest is the body of POST /v1/drain.
type DrainRequest struct {
	ForNs int64 `json:"for_ns"` // how long while the board is awake, and not beyond its next boot; 0: until somebody ends it
	Force bool  `json:"force"`  // even if no other board passes
}

// PauseRequest is the body of POST /v1/pause.
type PauseRequest struct {
	ForNs int64 `json:"for_ns"` // how long
}

// Done is the answer to the other requests that act.
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

// Tried has the results of the checks of a TryRequest, in their order.
type Tried struct {
	Checks []TriedCheck `json:"checks"`
}

// TriedCheck is the result of one check.
type TriedCheck struct {
	NameText string `json:"name_text"` // what it looks at
	Passing  bool   `json:"passing"`
	Text     string `json:"text"` // why it fails; "" if it passes
}

// Keys is what GET /v1/keys returns: which keys this board and the others accept. A key is named by its fingerprint,
// which does not give it away.
type Keys struct {
	SignsWith   string `json:"signs_with"`   // what this board sends; "" if the group has no key
	AlsoAccepts string `json:"also_accepts"` // a second key that this board accepts from others; "" if there is none
	RunningNs   int64  `json:"running_ns"`   // since the daemon started; it does not know which boards it heard before that
	// Boards are the others that this board has heard within a day, the last one heard first.
	Boards []BoardKeys `json:"boards"`
}

// BoardKeys is what one board has told of its keys.
type BoardKeys struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Address     string `json:"address"`
	HeardNs     int64  `json:"heard_ns"`     // since its last message
	Live        bool   `json:"live"`         // it was heard lately, and has not left
	SignsWith   string `json:"signs_with"`   // "" if it has told nothing: its program cannot change keys, or it has just been met
	AlsoAccepts string `json:"also_accepts"` // "" if it accepts no other
}

// ErrNotRunning means that nobody serves the socket.
var ErrNotRunning = errors.New("the daemon does not run")

// Refuse returns an error for a [Backend] to return. The client gets that HTTP status, 400 to 599.
func Refuse(code int, message, hint string) error {
	return &web.Error{Code: code, Message: message, Hint: hint}
}

// denied returns the error for a request that the user may not make.
func denied(message, hint string) error { return Refuse(http.StatusForbidden, message, hint) }
