// Package config reads topdog's configuration, the group key, and writes both
// for a new board.
//
// The file is TOML. Only one key is required:
//
//	address = "192.168.1.250"
//
// Whatever is wrong with a file is reported at once, each problem with its
// file, line and column, the line itself with a mark under the place, and what
// to write instead. See [Errors].
//
// # Why not the library's decoder
//
// The syntax is read by go-toml's parser, but the values are put in place by a
// table of keys (see fields.go) instead of go-toml's reflecting decoder. That
// decoder, in v2.4.3, has four properties that this package promises not to
// have: it never calls UnmarshalText on a named string type, so that a check
// would silently be skipped; it loses the position when UnmarshalText refuses a
// number; it stops at the first bad value; and it takes Address for address.
package config

import (
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// DefaultPath is where topdog looks for its configuration.
const DefaultPath = "/etc/topdog/topdog.toml"

// The limits of what a file may say. Each is small enough that the largest
// legal configuration costs nothing, and large enough for a group of the
// largest size (255 boards, the design's limit).
const (
	MaxAddresses  = 16  // floating addresses of one group
	MaxPeers      = 254 // a group of 255, without this board
	MaxLabelBytes = 32  // group and name: HELLO carries both in one datagram
	MaxPriority   = 254 // one byte on the wire; 255 is kept free
	MaxWords      = 16  // of score_command, the program included
	MinHeartbeat  = 10 * time.Millisecond
	MaxHeartbeat  = 10 * time.Second

	// maxFileBytes bounds the file, so that a wrong path (a disk image, an
	// endless device) is refused instead of read into a small board's memory.
	maxFileBytes = 64 << 10
)

// Defaults of the keys that have a fixed one.
const (
	DefaultGroup     = "topdog"
	DefaultPriority  = 100
	DefaultHeartbeat = 100 * time.Millisecond
	DefaultKeyFile   = "/etc/topdog/key"
	DefaultLED       = "ACT" // the board's own light: a demonstration needs no wiring
	DefaultSocket    = "/run/topdog/topdog.sock"
	DefaultLogLevel  = "info"
	DefaultHold      = HoldAuto
	DefaultDetector  = "auto" // the one that suits the algorithm
)

// DefaultMulticast is the group address and port of the design: 224.0.0.254 is
// link-local (RFC 4727), so that switches with IGMP snooping flood it instead
// of pruning it.
var DefaultMulticast = netip.AddrPortFrom(netip.AddrFrom4([4]byte{224, 0, 0, 254}), 9254)

// What a file may name when [Options] does not list it. The first is the
// default; that of the detectors is DefaultDetector, which comes before them.
var (
	DefaultAlgorithms = []string{"heir", "bully", "score", "modified", "candidates", "minid", "agents"}
	DefaultDetectors  = []string{"ask", "fixed", "nfd-e"}
	DefaultFanouts    = []string{"multicast", "unicast"}
	DefaultMeasures   = []string{"priority", "age", measureCommand}
)

// The words whose meaning matters here, because keys depend on each other.
const (
	algorithmScore = "score"   // the only algorithm that has a measure
	measureCommand = "command" // the only measure that has a command
)

// NoKey as key_file means: no authentication. It has to be written; nothing
// else turns authentication off.
const NoKey = "none"

// Config is one board's configuration, checked and complete: every key that the
// file does not set has its default. Field order is the order of the reference.
type Config struct {
	Addresses []Address     // address: the floating addresses
	Interface string        // interface: "" means the one whose subnet contains the first address
	Group     string        // group: the boards with the same group and key share one leader
	ID        ID            // id: 0 means the board's own IPv4 address
	Priority  uint8         // priority: higher wins, 0 never leads
	Preempt   bool          // preempt: a higher rank takes over from a living leader
	Heartbeat time.Duration // heartbeat: how often the leader says that it lives
	Algorithm string        // algorithm: one of Options.Algorithms
	Detector  string        // detector: one of Options.Detectors, or DefaultDetector
	Fanout    string        // fanout: one of Options.Fanouts
	Measure   string        // measure: one of Options.Measures
	// ScoreCommand is score_command: a program and its arguments; empty unless
	// Measure is "command".
	ScoreCommand []string
	Multicast    netip.AddrPort // multicast: group address and UDP port
	Peers        []netip.Addr   // peers: also spoken to by unicast
	KeyFile      string         // key_file: absolute path, or NoKey
	LED          string         // led: see package gpio
	Name         string         // name: what others call this board; "" if the host has none
	Socket       string         // socket: where `topdog status` talks to the daemon
	LogLevel     string         // log_level: a level of logrus
	Hold         Hold           // hold: how the address is held

	file   string            // where it was read
	places map[string]string // key -> "file:line:column" of its value
}

// Where says where the value of key comes from, for messages about values that
// only turn out to be wrong later, such as an interface that does not exist:
// "/etc/topdog/topdog.toml:3:13", or "the default".
func (c *Config) Where(key string) string {
	if place, ok := c.places[key]; ok {
		return place
	}
	return "the default"
}

// File returns the name of the file that the configuration was read from.
func (c *Config) File() string { return c.file }

// Options carries what this package must know but must not import.
type Options struct {
	// Algorithms lists the valid values of `algorithm`, the default first.
	// Empty means DefaultAlgorithms.
	Algorithms []string
	// Detectors, Fanouts and Measures list the valid values of the keys of these
	// names, the default first; `detector` has DefaultDetector as well, and that
	// is its default. Empty means DefaultDetectors and so on.
	Detectors, Fanouts, Measures []string
	// CheckLED says what is wrong with a value of `led`. Nil accepts all text.
	CheckLED func(text string) error
	// Hostname gives the default of `name`. Nil means os.Hostname.
	Hostname func() (string, error)
}

func (o Options) algorithms() []string { return orElse(o.Algorithms, DefaultAlgorithms) }
func (o Options) fanouts() []string    { return orElse(o.Fanouts, DefaultFanouts) }
func (o Options) measures() []string   { return orElse(o.Measures, DefaultMeasures) }

func (o Options) detectors() []string {
	return append([]string{DefaultDetector}, orElse(o.Detectors, DefaultDetectors)...)
}

func orElse(words, standard []string) []string {
	if len(words) == 0 {
		return standard
	}
	return words
}

// defaults returns the configuration of an empty file, which lacks only an
// address.
func (o Options) defaults() *Config {
	hostname := o.Hostname
	if hostname == nil {
		hostname = os.Hostname
	}
	// A board without a host name has no name to show: others then see its id.
	name, err := hostname()
	if err != nil {
		name = ""
	}
	return &Config{
		Group:     DefaultGroup,
		Priority:  DefaultPriority,
		Heartbeat: DefaultHeartbeat,
		Algorithm: o.algorithms()[0],
		Detector:  DefaultDetector,
		Fanout:    o.fanouts()[0],
		Measure:   o.measures()[0],
		Multicast: DefaultMulticast,
		KeyFile:   DefaultKeyFile,
		LED:       DefaultLED,
		Name:      shortHostname(name),
		Socket:    DefaultSocket,
		LogLevel:  DefaultLogLevel,
		Hold:      DefaultHold,
	}
}

// shortHostname turns what the kernel calls the host into what topdog shows:
// the first label, its printable ASCII, at most MaxLabelBytes of it. A board is
// not refused because of a strange host name; who cares sets `name`.
func shortHostname(host string) string {
	host, _, _ = strings.Cut(host, ".")
	short := make([]byte, 0, MaxLabelBytes)
	for i := 0; i < len(host) && len(short) < MaxLabelBytes; i++ {
		if host[i] > ' ' && host[i] < 0x7f {
			short = append(short, host[i])
		}
	}
	return string(short)
}

// Load reads and checks the file at path. The error is an [Errors]; if the file
// could not be read, errors.Is finds the cause (fs.ErrNotExist, fs.ErrPermission).
func Load(path string, opts Options) (*Config, error) {
	data, _, err := readSmall(path, maxFileBytes)
	if err != nil {
		hint := ""
		switch {
		case isNotExist(err):
			hint = "make one with `topdog init ADDRESS`, or name another file with --config"
		case isPermission(err):
			hint = "run topdog as root, or as a user who may read the file"
		}
		return nil, Errors{{File: path, Message: "cannot read the configuration: " + bare(err), Hint: hint, Err: err}}
	}
	return Parse(path, data, opts)
}

// readSmall reads a regular file of at most limit bytes. It opens without
// blocking, so that a named pipe in the file's place is refused, not waited for.
func readSmall(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, fmt.Errorf("it is not a regular file but %s", kindOfFile(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, info, err
	}
	if int64(len(data)) > limit {
		return nil, info, fmt.Errorf("it is larger than %d bytes, so it cannot be the right file", limit)
	}
	return data, info, nil
}

func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}

// besides returns path as seen from the directory of the file that mentions it.
func besides(file, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}
