package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/gpio"
	"topdog/internal/check"
	"topdog/netio"
	"topdog/wire"
)

// form is the set of TOML values that a key takes.
type form uint8

const (
	takesText form = 1 << iota
	takesNumber
	takesBool
	takesList   // of text; each element is set by itself
	takesTables // which are read in checks.go
)

// field is all that this package knows about one key. Reading, writing,
// comparing and the tests of the documentation go by the table of fields, so
// that a key is added in one place.
type field struct {
	key     string
	form    form
	max     int    // for lists: the greatest number of elements
	filled  bool   // for lists: there must be an element
	example string // a value as it would be written
	live    bool   // can be applied by SIGHUP, without a restart
	page    bool   // is for `topdog page`, and nothing to the daemon
	shared  bool   // the same on all boards of a group

	// set checks one value and stores it. Numbers arrive in decimal, booleans
	// as "true" or "false", lists one element at a time.
	set func(c *Config, text string) error
	// get writes the value as TOML; "" if the key should be left out.
	get func(c *Config) string
	// copy stores the value that another configuration has.
	copy func(to, from *Config)
}

// fields lists every key in the order of the reference. It is a function, not a
// variable, so that nobody can change it.
func fields() []field {
	return []field{
		typed(field{key: "address", form: takesText | takesList, max: MaxAddresses, filled: true, example: `"192.168.1.250"`, shared: true},
			func(c *Config) *[]Address { return &c.Addresses }, oneMoreAddress, tomlList[Address]),
		typed(field{key: "interface", form: takesText, example: `"eth0"`},
			func(c *Config) *string { return &c.Interface }, checked(checkInterface), tomlOptional),
		typed(field{key: "group", form: takesText, example: `"topdog"`, shared: true},
			func(c *Config) *string { return &c.Group }, checked(checkGroup), Quote),
		typed(field{key: "id", form: takesText | takesNumber, example: `"auto"`},
			func(c *Config) *wire.ID { return &c.ID }, alone(parseID), tomlID),
		typed(field{key: "priority", form: takesNumber, example: "100", live: true},
			func(c *Config) *uint8 { return &c.Priority }, alone(parsePriority), tomlPlain[uint8]),
		typed(field{key: "preempt", form: takesBool, example: "false", live: true},
			func(c *Config) *bool { return &c.Preempt }, alone(strconv.ParseBool), tomlPlain[bool]),
		typed(field{key: "preempt_delay", form: takesText, example: `"auto"`, live: true},
			func(c *Config) *time.Duration { return &c.PreemptDelay }, alone(parsePreemptDelay), tomlAuto),
		typed(field{key: "take_in_use", form: takesBool, example: "false"},
			func(c *Config) *bool { return &c.TakeInUse }, alone(strconv.ParseBool), tomlPlain[bool]),
		typed(field{key: "heartbeat", form: takesText, example: `"100ms"`, shared: true},
			func(c *Config) *time.Duration { return &c.Interval }, alone(parseHeartbeat), tomlText[time.Duration]),
		typed(field{key: "patience", form: takesText, example: `"auto"`, shared: true},
			func(c *Config) *time.Duration { return &c.Patience }, alone(parsePatience), tomlAuto),
		choice(field{key: "algorithm", shared: true},
			func(c *Config) *wire.Algorithm { return &c.Algorithm }, algorithms(), literature.AlgorithmNamed),
		typed(field{key: "voters", form: takesText | takesNumber | takesList, max: MaxVoters, example: `["192.168.1.11", "192.168.1.12", "192.168.1.13"]`, shared: true},
			func(c *Config) *[]wire.ID { return &c.Voters }, oneMoreVoter, tomlList[wire.ID]),
		choice(field{key: "detector"},
			func(c *Config) *silence.DetectorKind { return &c.Detector }, detectors(), silence.DetectorNamed),
		choice(field{key: "fanout"},
			func(c *Config) *election.Fanout { return &c.Fanout }, election.Fanouts(), election.FanoutNamed),
		choice(field{key: "score_from", shared: true},
			func(c *Config) *election.ScoreSource { return &c.ScoreSource }, election.ScoreSources(), election.ScoreSourceNamed),
		typed(field{key: "score_command", form: takesText | takesList, max: MaxWords, example: `["/usr/local/bin/my-score", "--verbose"]`, live: true},
			func(c *Config) *[]string { return &c.ScoreCommand }, oneMoreWord, tomlList[string]),
		typed(field{key: "start_grace", form: takesText, example: `"10s"`, live: true},
			func(c *Config) *time.Duration { return &c.StartGrace }, alone(parseStartGrace), tomlText[time.Duration]),
		typed(field{key: "multicast", form: takesText, example: `"224.0.0.254:9254"`, shared: true},
			func(c *Config) *netip.AddrPort { return &c.Multicast }, alone(parseMulticast), tomlText[netip.AddrPort]),
		typed(field{key: "peers", form: takesText | takesList, max: MaxPeers, example: `["192.168.1.11", "192.168.1.12"]`, live: true},
			func(c *Config) *[]netip.Addr { return &c.Peers }, oneMorePeer, tomlList[netip.Addr]),
		typed(field{key: "witness", form: takesText | takesList, max: MaxWitnesses, filled: true, example: `"auto"`, live: true},
			func(c *Config) *Witness { return &c.Witness }, oneMoreWitness, tomlWitness),
		typed(field{key: "key_file", form: takesText, example: `"/etc/topdog/key"`, live: true},
			func(c *Config) *string { return &c.KeyFile }, parseKeyFile, Quote),
		typed(field{key: "led", form: takesText, example: `"ACT"`, live: true},
			func(c *Config) *gpio.Spec { return &c.LED }, alone(parseLED), tomlLED),
		typed(field{key: "name", form: takesText, example: `"shelf-3"`},
			func(c *Config) *string { return &c.Name }, checked(checkName), tomlOptional),
		typed(field{key: "socket", form: takesText, example: `"/run/topdog/topdog.sock"`},
			func(c *Config) *string { return &c.Socket }, checked(checkSocket), Quote),
		typed(field{key: "log_level", form: takesText, example: `"info"`, live: true},
			func(c *Config) *logrus.Level { return &c.LogLevel }, alone(parseLogLevel), tomlLogLevel),
		choice(field{key: "hold"},
			func(c *Config) *netio.HoldMethod { return &c.Hold }, netio.HoldMethodNames(), netio.HoldMethodNamed),
		typed(field{key: "page_listen", form: takesText, example: `":9254"`, page: true},
			func(c *Config) *Listen { return &c.PageListen }, alone(ParseListen), tomlText[Listen]),
		typed(field{key: "page_hosts", form: takesText | takesList, max: MaxPageHosts, example: `["topdog.lan", "pi.example.org"]`, page: true},
			func(c *Config) *[]string { return &c.PageHosts }, oneMorePageHost, tomlList[string]),
		typed(field{key: checkKey, form: takesTables, max: check.Max, example: `[{ unit = "nginx.service" }]`, live: true},
			func(c *Config) *[]check.Check { return &c.Checks }, alone(noCheck), tomlChecks),
	}
}

// typed completes the field of a key: place is where its value is, parse makes the
// value of one text (for lists, of one more element), and write makes TOML of it.
func typed[T any](f field, place func(*Config) *T, parse func(*Config, string) (T, error), write func(T) string) field {
	f.set = func(c *Config, text string) error {
		v, err := parse(c, text)
		if err == nil {
			*place(c) = v
		}
		return err
	}
	f.get = func(c *Config) string { return write(*place(c)) }
	f.copy = func(to, from *Config) { *place(to) = *place(from) }
	return f
}

// choice completes the field of a key that takes one of the names of a type, of
// which the first is the default.
func choice[T fmt.Stringer](f field, place func(*Config) *T, names []string, find func(string) (T, bool)) field {
	f.form, f.example = takesText, Quote(names[0])
	return typed(f, place, alone(func(text string) (T, error) {
		v, _ := find(text)
		return v, oneOf(text, names)
	}), tomlText[T])
}

// alone is for values that depend on nothing else in the file.
func alone[T any](parse func(string) (T, error)) func(*Config, string) (T, error) {
	return func(_ *Config, text string) (T, error) { return parse(text) }
}

// checked is for texts that are stored as they are written.
func checked(check func(string) error) func(*Config, string) (string, error) {
	return func(_ *Config, text string) (string, error) { return text, check(text) }
}

// algorithms are the names that algorithm takes: those of the algorithms that need nothing
// else, and the one that needs voters.
func algorithms() []string {
	return append(literature.Algorithms(), wire.AlgorithmStrict.String())
}

// detectors are the names that detector takes: those of the failure detectors, and
// before them the one that leaves it to the algorithm.
func detectors() []string {
	return append([]string{silence.DetectorDefault.String()}, silence.Detectors()...)
}

func oneMoreAddress(c *Config, text string) ([]Address, error) {
	a, err := ParseAddress(text)
	if err != nil {
		return nil, err
	}
	for _, other := range c.Addresses {
		if other.IP == a.IP {
			return nil, refuse("delete one of the two", "%s is listed twice", a.IP)
		}
	}
	return append(c.Addresses, a), nil
}

func oneMorePeer(c *Config, text string) ([]netip.Addr, error) {
	const example = `write the own address of another board, for example "192.168.1.11"`
	if host, _, found := strings.Cut(text, "/"); found {
		if _, err := netip.ParseAddr(host); err == nil {
			return nil, refuse("write "+Quote(host), "%s has a prefix length, only the address belongs here", quoted(text))
		}
	}
	ip, err := parseIPv4(text, example)
	switch {
	case err != nil:
		return nil, err
	case ip.IsLoopback():
		return nil, refuse(example, "%s is a loopback address, which is no other board's", ip)
	case slices.Contains(c.Peers, ip):
		return nil, refuse("delete one of the two", "%s is listed twice", ip)
	}
	return append(c.Peers, ip), nil
}

// oneMoreVoter takes one id after the other. Every voter has one, so it may not be left to the board.
func oneMoreVoter(c *Config, text string) ([]wire.ID, error) {
	id, err := parseID(text)
	if err != nil || id == wire.Nobody {
		return nil, refuse(`write the id of a voter: its own address, for example "192.168.1.11", or the number that it has as its id`,
			"%s is not the id of a voter", quoted(text))
	}
	voters := append(c.Voters, id)
	if err := election.CheckVoters(voters); err != nil {
		return nil, refuse("delete one of the two: a voter has one vote", "the list %v", err)
	}
	return voters, nil
}

// oneMoreWord takes one word of score_command after the other: the program, and its
// arguments. What is refused is kept as well, so that the word behind a program
// that was refused is not taken for the program; the file is refused anyway.
func oneMoreWord(c *Config, text string) ([]string, error) {
	program := len(c.ScoreCommand) == 0
	c.ScoreCommand = append(c.ScoreCommand, text)
	if program {
		return c.ScoreCommand, checkProgram("score_command", text, "/usr/local/bin/my-score")
	}
	if strings.ContainsRune(text, 0) {
		return nil, refuse("", "%s contains a NUL character, which no argument of a program can", quoted(text))
	}
	return c.ScoreCommand, nil
}

// Keys returns the name of every key, in the order of the reference.
func Keys() []string {
	all := fields()
	keys := make([]string, len(all))
	for i, f := range all {
		keys[i] = f.key
	}
	return keys
}

// Live reports whether a running daemon can take over a new value of key, on
// SIGHUP, without a restart. The others are part of what the boards of a group
// agree on, or name something that is opened once.
func Live(key string) bool { return named(key).live }

// OfPage reports whether the key is for `topdog page`, another process than the daemon: it
// takes a new value when it is started again.
func OfPage(key string) bool { return named(key).page }

// Shared reports whether all boards of a group must have the same value of key. The
// other keys are each board's own business.
func Shared(key string) bool { return named(key).shared }

// named returns the field of a key. That of a key that does not exist is empty.
func named(key string) field {
	for _, f := range fields() {
		if f.key == key {
			return f
		}
	}
	return field{}
}

// ApplyLive takes over the values of the live keys of another configuration, and of those that
// are nothing to the daemon.
func (c *Config) ApplyLive(from *Config) {
	for _, f := range fields() {
		if f.live || f.page {
			f.copy(c, from)
		}
	}
}

// Changed returns the keys whose values differ between c and other, in the
// order of the reference. [Live] says which of them need no restart.
func (c *Config) Changed(other *Config) []string {
	var changed []string
	for _, f := range fields() {
		if f.get(c) != f.get(other) {
			changed = append(changed, f.key)
		}
	}
	return changed
}

// Value returns the value of a key as it is written in a file.
func (c *Config) Value(key string) string { return named(key).get(c) }
