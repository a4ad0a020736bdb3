// Package check finds out whether the services of a board work.
//
// A [Check] says what is checked, how often, and how many results in a row count. The checks and the score command run in
// a process of their own, the checker. So the process that leads the group reads no answer of a service, and nothing that
// hangs delays a heartbeat.
//
// Once it hears packets, the daemon executes nothing. So before that it starts the starter ([Open]), which has no
// capabilities and waits. The daemon, the starter and the checker share one pair of sockets. The daemon sends requests: an
// [Order] says what to run, and a trial runs checks once. When there is a request and no checker, the starter starts one. A
// checker with nothing to run ends. A checker sends a [Report] whenever a check changes, for each run of the score command,
// and every second. So the daemon notices a checker that is stuck, and has the starter kill it. If the daemon ends, so do
// the starter and the checker.
//
// The checker has no capabilities either, and keeps the rest of the unit's sandbox. So it can't ask the gateway by ARP. It
// asks the daemon to do that, and the daemon asks its holder.
//
// Most kinds of checks are polled (worker.go). The runs of a check are evenly spaced from start to start, with a little
// jitter. A run ends before its timeout, and runs don't overlap. Two kinds are told of changes: a unit by D-Bus signals
// of systemd, and a process by its pidfd. These are polled slowly as well.
package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Kind is the way in which a check finds out whether a service works.
type Kind uint8

// The kinds of checks, in the order of the documentation.
const (
	Unit    Kind = iota // a systemd unit is active, and its main process lives
	Exec                // a process of a program runs
	TCP                 // a port accepts connections
	HTTP                // a server answers a GET as expected
	DNS                 // a name server answers a question
	Command             // a program ends with status 0
	Gateway             // the default gateway answers ARP
	kinds
)

var kindNames = [kinds]string{"unit", "exec", "tcp", "http", "dns", "command", "gateway"}

// String returns the kind's identifier, which is also its key in the configuration.
func (k Kind) String() string { return kindNames[k] }

// Kinds returns the identifiers of all kinds.
func Kinds() []string { return slices.Clone(kindNames[:]) }

// tellsAtOnce reports whether the kernel or systemd says that a service of this kind has failed. Such a failure is a fact,
// and doesn't have to be seen several times.
func (k Kind) tellsAtOnce() bool { return k == Unit || k == Exec }

// When says on which boards a check counts.
type When uint8

// When a check counts.
const (
	Always  When = iota // on all boards
	Leading             // on the leader, for a service that runs or answers only there
)

var whenNames = [...]string{"always", "leading"}

// String returns the word of the configuration.
func (w When) String() string { return whenNames[w] }

// WhenNames returns the words of the configuration. The first is the default.
func WhenNames() []string { return slices.Clone(whenNames[:]) }

// WhenNamed returns the meaning of a word of the configuration.
func WhenNamed(name string) (w When, known bool) {
	i := slices.Index(whenNames[:], name)
	return When(max(i, 0)), i >= 0
}

// Check is one check, as it was configured.
type Check struct {
	Kind   Kind   `json:"kind"`
	Target string `json:"target"`          // what is checked, depending on the kind; "" for the gateway
	Title  string `json:"title,omitempty"` // what people call the check; "" for the target

	User      string   `json:"user,omitempty"`      // exec: the owner of the process; "" for any
	Host      string   `json:"host,omitempty"`      // http: the server's name, if the URL has another
	Status    []int    `json:"status,omitempty"`    // http: the accepted statuses; none for 200 to 399
	Contains  string   `json:"contains,omitempty"`  // http: a text that the answer must contain
	Arguments []string `json:"arguments,omitempty"` // command

	Every   time.Duration `json:"every"`
	Timeout time.Duration `json:"timeout"`
	Rise    int           `json:"rise"` // successes in a row until it passes again
	Fall    int           `json:"fall"` // failures in a row until it fails
	When    When          `json:"when"`
	// Grace is how long failures are excused after this board has begun to lead. Only checks
	// that count on the leader have it.
	Grace time.Duration `json:"grace,omitempty"`
}

// The defaults. Rise and fall are HAProxy's. As in HAProxy, the interval is also the default timeout. A Raspberry Pi takes
// up to thirty seconds to start the services of a leader.
const (
	DefaultEvery = time.Second
	DefaultRise  = 2
	DefaultFall  = 3
	DefaultGrace = 30 * time.Second
)

// The bounds. With 16 checks every 50 ms a board would do little else.
const (
	Max        = 16 // checks of a board
	MinEvery   = 50 * time.Millisecond
	MaxEvery   = time.Hour
	MinTimeout = 10 * time.Millisecond
	MaxCount   = 100 // of rise and fall
	MaxGrace   = time.Hour
	MaxTitle   = 32 // bytes, which leaves room for the result on a line of the status
)

// ID identifies a check. Two checks that differ in anything have different IDs.
func (c *Check) ID() string {
	text, _ := json.Marshal(c) // can't fail: all of its fields are numbers and strings
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// String returns what people call the check, as in "unit nginx.service".
func (c *Check) String() string {
	text := c.Kind.String()
	if c.Title != "" {
		return text + " " + c.Title
	}
	if c.Target != "" {
		text += " " + c.Target
	}
	if c.User != "" {
		text += " of user " + c.User
	}
	return text
}

// words returns a command's program and its arguments.
func (c *Check) words() []string { return append([]string{c.Target}, c.Arguments...) }

// JoinDNS returns the target of a DNS check that asks a server for a name.
func JoinDNS(name, server string) string { return name + " @" + server }

// SplitDNS reverses JoinDNS.
func SplitDNS(target string) (name, server string, ok bool) {
	name, server, ok = strings.Cut(target, "@")
	name, server = strings.TrimSpace(name), strings.TrimSpace(server)
	return name, server, ok && name != "" && server != "" && !strings.ContainsAny(name+server, " \t@")
}
