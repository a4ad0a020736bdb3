// Package config reads topdog's configuration and the group key.
//
// The file is TOML. Only one key is required:
//
//	address = "192.168.1.250"
//
// All mistakes of a file are reported at once. The report of each has its file,
// line and column, the line itself with a mark under the place, and what to write
// instead. See [Errors].
//
// # Why not the library's decoder
//
// go-toml's parser reads the syntax (document.go), and tables of settings say what each key takes
// (settings.go). go-toml's decoder, in v2.4.3, would do less and cost more:
//
//   - It stops at the first bad value.
//   - It has no places of values, only of keys.
//   - It never calls UnmarshalText on a named string type, so a check would
//     silently be skipped.
//   - It accepts Address for address.
//   - It adds 197 kB to the program for arm64.
//
// BurntSushi/toml stops at the first mistake too, and keeps the places of keys to itself (its issue 462).
package config

import (
	"cmp"
	_ "embed"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/check"
	"topdog/internal/health"
	"topdog/netio"
	"topdog/wire"
)

// DefaultPath is where topdog looks for its configuration.
const DefaultPath = "/etc/topdog/topdog.toml"

// Limits of values that have no type of their own. Each is
// small enough that the largest legal configuration costs nothing.
const (
	MaxAddresses  = 16                 // floating addresses of one group
	MaxPeers      = wire.MaxBoards - 1 // the largest group, without this board
	MaxGroupBytes = 32                 // as many as a name has
	MinVoters     = 3                  // of fewer, the loss of one leaves no majority
	MaxWords      = 16                 // of score_command, the program included
)

// Defaults of values that have no type of their own.
const (
	defaultGroup   = "topdog"
	DefaultKeyFile = "/etc/topdog/key"
	DefaultSocket  = "/run/topdog/topdog.sock"
)

// NoKey as key_file turns authentication off. Nothing else does.
const NoKey = "none"

// Config is one board's configuration, checked and complete: every key that the
// file does not set has its default. The daemon is given it as it is.
type Config struct {
	// Config is the part that the election needs. Its ID is wire.Nobody if the id is to be the
	// board's own IPv4 address. The daemon finds out Incarnation and Members, which no key sets. Several says that the file has
	// several groups.
	election.Config

	Addresses []Address // address: the floating addresses, of which at least one is of IPv4
	// OtherAddresses are the floating addresses of the board's other groups. They are never its own either.
	OtherAddresses []netip.Addr
	Paths
	Group  string   // group: the boards with the same group and key share one leader
	Prefer []string // prefer: the boards that should lead, the best first; Priority and Preempt follow from it
	// ScoreCommand is score_command: a program and its arguments; empty unless
	// ScoreSource is election.ScoreFromCommand.
	ScoreCommand []string
	StartGrace   time.Duration    // start_grace: how long checks may take until they pass for the first time
	Multicast    netip.AddrPort   // multicast: group address and UDP port
	Peers        []netip.Addr     // peers: also spoken to by unicast
	Witness      Witness          // witness: who is asked whether this board's port receives
	KeyFile      string           // key_file: absolute path, or NoKey
	Keys         Keyring          // the secrets that Groups.ReadKeys has read; zero without authentication
	LED          gpio.Spec        // led
	Socket       string           // socket: where `topdog status` talks to the daemon
	LogLevel     logrus.Level     // log_level
	Hold         netio.HoldMethod // hold: how the address is held
	PageListen   Listen           // page_listen: where `topdog page` listens
	PageHosts    []string         // page_hosts: names that browsers may ask the page for, in lower case
	Checks       []check.Check    // check

	file string            // the path that it was read from
	set  map[string]origin // of the keys that the file sets
}

// Paths are the interfaces by which the boards hear each other.
type Paths struct {
	Interface       string // interface: "" means the one whose subnet contains the first IPv4 address
	SecondInterface string // interface: the second one; "" for none
}

// origin is where the value of a key comes from.
type origin struct{ place, text string }

// unset is both the place and the text of a value that the file does not set.
const unset = "the default"

// FirstIPv4 returns the floating address that the election is about: other machines are asked by ARP who has it, and the
// interface is the one whose subnet contains it. The other addresses, of either family, move with it.
func (c *Config) FirstIPv4() netip.Addr {
	for _, a := range c.Addresses {
		if a.IP.Is4() {
			return a.IP
		}
	}
	return netip.Addr{} // ParseGroups returns no such configuration
}

// Where returns where the value of key comes from: "/etc/topdog/topdog.toml:3:13", or
// "the default". It is for messages about values that only turn out to be wrong later, such as
// an interface that does not exist.
func (c *Config) Where(key string) string { return cmp.Or(c.set[key].place, unset) }

// Value returns the value of key as it is written in the file, or "the default".
func (c *Config) Value(key string) string {
	if key == checkKey {
		var names []string
		for i := range c.Checks {
			names = append(names, c.Checks[i].String())
		}
		return cmp.Or(strings.Join(names, ", "), "none")
	}
	return cmp.Or(c.set[key].text, unset)
}

// Sets reports whether the file sets the key.
func (c *Config) Sets(key string) bool {
	_, set := c.set[key]
	return set
}

// NotesDir is the directory in which the daemon notes which light it has. It is that of the socket:
// a directory that the next boot empties.
func (c *Config) NotesDir() string { return filepath.Dir(c.Socket) }

// hostname returns what the kernel calls this board. Tests replace it.
var hostname = os.Hostname

// Defaults returns the configuration of an empty file, which lacks only an address.
func Defaults() *Config {
	host, _ := hostname() // if that fails, others see the id in place of a name
	return &Config{
		Config: election.Config{
			Name:      shortHostname(host),
			Priority:  election.DefaultPriority,
			Interval:  election.DefaultInterval,
			Algorithm: wire.AlgorithmHeir,
		},
		Group:      defaultGroup,
		StartGrace: health.DefaultStartGrace,
		Multicast:  wire.DefaultGroup,
		Witness:    Witness{Gateway: true},
		KeyFile:    DefaultKeyFile,
		LED:        gpio.Default,
		Socket:     DefaultSocket,
		LogLevel:   logrus.InfoLevel,
		PageListen: defaultListen,
	}
}

// shortHostname turns what the kernel calls the host into what topdog shows: the printable ASCII
// of the first label, at most wire.MaxName bytes of it. A strange host name is no reason to refuse
// a board; if the result is wrong, the key name sets another.
func shortHostname(host string) string {
	host, _, _ = strings.Cut(host, ".")
	short := make([]byte, 0, wire.MaxName)
	for i := 0; i < len(host) && len(short) < wire.MaxName; i++ {
		if host[i] > ' ' && host[i] < 0x7f {
			short = append(short, host[i])
		}
	}
	return string(short)
}

//go:embed reference.toml
var reference []byte

// Reference returns the annotated configuration that documents every key with
// its default. It is itself a valid file, also after "#" is removed from every
// "#key = value" line.
func Reference() []byte { return slices.Clone(reference) }
