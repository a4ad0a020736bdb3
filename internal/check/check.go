package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says how it is found out whether a service works.
type Kind uint8

// The kinds of checks, in the order of the documentation.
const (
	Unit    Kind = iota // a unit of systemd is active, and its main process lives
	Exec                // a process of a program is there
	TCP                 // something accepts a connection
	HTTP                // a server answers a GET as it should
	DNS                 // a name server answers a question
	Command             // a program ends with status 0
	Gateway             // the default gateway answers ARP
	kinds
)

var kindNames = [kinds]string{"unit", "exec", "tcp", "http", "dns", "command", "gateway"}

// String returns the identifier of the kind, which is its key in the configuration too.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Kinds returns the identifiers of all kinds.
func Kinds() []string { return slices.Clone(kindNames[:]) }

// tellsAtOnce reports whether the kernel or systemd tells of a failure, so that one is a fact
// and need not be seen several times.
func (k Kind) tellsAtOnce() bool { return k == Unit || k == Exec }

// When says on which boards a check is judged.
type When uint8

// When a check is judged.
const (
	Always  When = iota // on all boards
	Leading             // on the leader: what it is about runs or answers there only
)

// String returns the word of the configuration.
func (w When) String() string {
	if w == Leading {
		return "leading"
	}
	return "always"
}

// WhenNames are the words of the configuration, first the default.
func WhenNames() []string { return []string{Always.String(), Leading.String()} }

// WhenNamed returns what a word of the configuration stands for.
func WhenNamed(name string) (w When, known bool) {
	i := slices.Index(WhenNames(), name)
	return When(max(i, 0)), i >= 0
}

// Check is one check, as it was configured.
type Check struct {
	Kind   Kind   `json:"kind"`
	Target string `json:"target"`          // of the kind; the program of a command; "" for the gateway
	Title  string `json:"title,omitempty"` // what people call it; "" for the target

	User      string   `json:"user,omitempty"`      // exec: of the process; "" for any
	Host      string   `json:"host,omitempty"`      // http: the server's name, if it is not that of the URL
	Status    []int    `json:"status,omitempty"`    // http: what it may answer; none for 200 to 399
	Contains  string   `json:"contains,omitempty"`  // http: what must be in the answer
	Arguments []string `json:"arguments,omitempty"` // command

	Every   time.Duration `json:"every"`
	Timeout time.Duration `json:"timeout"`
	Rise    int           `json:"rise"` // it passes again after so many successes in a row
	Fall    int           `json:"fall"` // and fails after so many failures in a row
	When    When          `json:"when"`
	// Grace is how long failures are excused after this board has begun to lead. It is for
	// checks that are judged on the leader only.
	Grace time.Duration `json:"grace,omitempty"`
}

// Defaults of the numbers. Rise, fall and an interval that bounds the time too are HAProxy's.
// keepalived's grace is a mere number of retries; thirty seconds are what a Raspberry Pi
// takes to start what only the leader runs.
const (
	DefaultEvery = time.Second
	DefaultRise  = 2
	DefaultFall  = 3
	DefaultGrace = 30 * time.Second
)

// The bounds. With 16 checks every 50 ms, a board would do little else; so few need that.
const (
	Max        = 16 // checks of a board
	MinEvery   = 50 * time.Millisecond
	MaxEvery   = time.Hour
	MinTimeout = 10 * time.Millisecond
	MaxCount   = 100 // of rise and fall
	MaxGrace   = time.Hour
	MaxTitle   = 32 // bytes, so that a line of the status has room for the result
)

// ID tells one check from another. Two that differ in anything have different ones.
func (c *Check) ID() string {
	id, _ := json.Marshal(c) // there is nothing in it that cannot be written
	return string(id)
}

// String names the check for people, as in "unit nginx.service".
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

// words are the program of a command and its arguments.
func (c *Check) words() []string { return append([]string{c.Target}, c.Arguments...) }

// JoinDNS returns the target of a DNS check: a name, and the server that is asked for it.
func JoinDNS(name, server string) string { return name + " @" + server }

// SplitDNS is the reverse of JoinDNS.
func SplitDNS(target string) (name, server string, ok bool) {
	name, server, ok = strings.Cut(target, "@")
	name, server = strings.TrimSpace(name), strings.TrimSpace(server)
	return name, server, ok && name != "" && server != "" && !strings.ContainsAny(name+server, " \t@")
}
