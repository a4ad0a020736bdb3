package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// form is the set of TOML values that a key takes.
type form uint8

const (
	takesText form = 1 << iota
	takesNumber
	takesBool
	takesList // of text; each element is set by itself
)

// field is all that this package knows about one key. Reading, writing,
// comparing and the tests of the documentation go by the table of fields, so
// that a key is added in one place.
type field struct {
	key     string
	form    form
	max     int    // for lists: the greatest number of elements
	example string // a value as it would be written
	live    bool   // can be applied by SIGHUP, without a restart

	// set checks one value and stores it. Numbers arrive in decimal, booleans
	// as "true" or "false", lists one element at a time.
	set func(c *Config, o *Options, text string) error
	// get writes the value as TOML; "" if the key should be left out.
	get func(c *Config) string
}

// fields lists every key in the order of the reference. It is a function, not a
// variable, so that nobody can change it.
func fields() []field {
	return []field{
		{
			key: "address", form: takesText | takesList, max: MaxAddresses, example: `"192.168.1.250"`,
			set: setAddress,
			get: func(c *Config) string {
				texts := make([]string, len(c.Addresses))
				for i, a := range c.Addresses {
					texts[i] = a.String()
				}
				return tomlList(texts)
			},
		},
		{
			key: "interface", form: takesText, example: `"eth0"`,
			set: func(c *Config, _ *Options, text string) error { return store(&c.Interface, text, checkInterface(text)) },
			get: func(c *Config) string { return tomlOptional(c.Interface) },
		},
		{
			key: "group", form: takesText, example: `"topdog"`,
			set: func(c *Config, _ *Options, text string) error { return store(&c.Group, text, checkGroup(text)) },
			get: func(c *Config) string { return tomlString(c.Group) },
		},
		{
			key: "id", form: takesText | takesNumber, example: `"auto"`,
			set: func(c *Config, _ *Options, text string) error { return c.ID.UnmarshalText([]byte(text)) },
			get: func(c *Config) string {
				if c.ID == AutoID {
					return `"auto"`
				}
				return strconv.FormatUint(uint64(c.ID), 10)
			},
		},
		{
			key: "priority", form: takesNumber, example: "100", live: true,
			set: func(c *Config, _ *Options, text string) error {
				priority, err := parsePriority(text)
				return store(&c.Priority, priority, err)
			},
			get: func(c *Config) string { return strconv.Itoa(int(c.Priority)) },
		},
		{
			key: "preempt", form: takesBool, example: "false", live: true,
			set: func(c *Config, _ *Options, text string) error { return store(&c.Preempt, text == "true", nil) },
			get: func(c *Config) string { return strconv.FormatBool(c.Preempt) },
		},
		{
			key: "heartbeat", form: takesText, example: `"100ms"`,
			set: func(c *Config, _ *Options, text string) error {
				heartbeat, err := parseHeartbeat(text)
				return store(&c.Heartbeat, heartbeat, err)
			},
			get: func(c *Config) string { return tomlString(c.Heartbeat.String()) },
		},
		{
			key: "algorithm", form: takesText, example: `"heir"`,
			set: func(c *Config, o *Options, text string) error {
				return store(&c.Algorithm, text, oneOf(text, o.algorithms()))
			},
			get: func(c *Config) string { return tomlString(c.Algorithm) },
		},
		{
			key: "detector", form: takesText, example: `"auto"`,
			set: func(c *Config, o *Options, text string) error {
				return store(&c.Detector, text, oneOf(text, o.detectors()))
			},
			get: func(c *Config) string { return tomlString(c.Detector) },
		},
		{
			key: "fanout", form: takesText, example: `"multicast"`,
			set: func(c *Config, o *Options, text string) error {
				return store(&c.Fanout, text, oneOf(text, o.fanouts()))
			},
			get: func(c *Config) string { return tomlString(c.Fanout) },
		},
		{
			key: "measure", form: takesText, example: `"priority"`,
			set: func(c *Config, o *Options, text string) error {
				return store(&c.Measure, text, oneOf(text, o.measures()))
			},
			get: func(c *Config) string { return tomlString(c.Measure) },
		},
		{
			key: "score_command", form: takesText | takesList, max: MaxWords, example: `["/usr/local/bin/my-score", "--verbose"]`, live: true,
			set: setScoreCommand,
			get: func(c *Config) string { return tomlList(c.ScoreCommand) },
		},
		{
			key: "multicast", form: takesText, example: `"224.0.0.254:9254"`,
			set: func(c *Config, _ *Options, text string) error {
				multicast, err := parseMulticast(text)
				return store(&c.Multicast, multicast, err)
			},
			get: func(c *Config) string { return tomlString(c.Multicast.String()) },
		},
		{
			key: "peers", form: takesText | takesList, max: MaxPeers, example: `["192.168.1.11", "192.168.1.12"]`, live: true,
			set: setPeer,
			get: func(c *Config) string {
				texts := make([]string, len(c.Peers))
				for i, ip := range c.Peers {
					texts[i] = ip.String()
				}
				return tomlList(texts)
			},
		},
		{
			key: "key_file", form: takesText, example: `"/etc/topdog/key"`,
			set: func(c *Config, _ *Options, text string) error {
				if text == NoKey {
					c.KeyFile = NoKey
					return nil
				}
				return store(&c.KeyFile, besides(c.file, text), checkKeyFile(text))
			},
			get: func(c *Config) string { return tomlString(c.KeyFile) },
		},
		{
			key: "led", form: takesText, example: `"ACT"`, live: true,
			set: setLED,
			get: func(c *Config) string { return tomlString(c.LED) },
		},
		{
			key: "name", form: takesText, example: `"shelf-3"`,
			set: func(c *Config, _ *Options, text string) error { return store(&c.Name, text, checkName(text)) },
			get: func(c *Config) string { return tomlOptional(c.Name) },
		},
		{
			key: "socket", form: takesText, example: `"/run/topdog/topdog.sock"`,
			set: func(c *Config, _ *Options, text string) error { return store(&c.Socket, text, checkSocket(text)) },
			get: func(c *Config) string { return tomlString(c.Socket) },
		},
		{
			key: "log_level", form: takesText, example: `"info"`, live: true,
			set: func(c *Config, _ *Options, text string) error {
				return store(&c.LogLevel, text, oneOf(text, logLevels))
			},
			get: func(c *Config) string { return tomlString(c.LogLevel) },
		},
		{
			key: "hold", form: takesText, example: `"auto"`,
			set: func(c *Config, _ *Options, text string) error {
				return store(&c.Hold, Hold(text), oneOf(text, holds))
			},
			get: func(c *Config) string { return tomlString(string(c.Hold)) },
		},
	}
}

// store puts a value in place unless it was refused.
func store[T any](place *T, value T, err error) error {
	if err == nil {
		*place = value
	}
	return err
}

func setAddress(c *Config, _ *Options, text string) error {
	a, err := ParseAddress(text)
	if err != nil {
		return err
	}
	for _, other := range c.Addresses {
		if other.IP == a.IP {
			return refuse("delete one of the two", "%s is listed twice", a.IP)
		}
	}
	c.Addresses = append(c.Addresses, a)
	return nil
}

func setPeer(c *Config, _ *Options, text string) error {
	const example = `write the own address of another board, for example "192.168.1.11"`
	if host, _, found := strings.Cut(text, "/"); found {
		if _, err := netip.ParseAddr(host); err == nil {
			return refuse("write "+tomlString(host), "%s has a prefix length, only the address belongs here", quoted(text))
		}
	}
	ip, err := parseIPv4(text, example)
	if err != nil {
		return err
	}
	if slices.Contains(c.Peers, ip) {
		return refuse("delete one of the two", "%s is listed twice", ip)
	}
	c.Peers = append(c.Peers, ip)
	return nil
}

// setScoreCommand takes one word after the other: the program, and its
// arguments. What is refused is kept as well, so that the word behind a program
// that was refused is not taken for the program; the file is refused anyway.
func setScoreCommand(c *Config, _ *Options, text string) error {
	program := len(c.ScoreCommand) == 0
	c.ScoreCommand = append(c.ScoreCommand, text)
	if program {
		return checkProgram(text)
	}
	if strings.ContainsRune(text, 0) {
		return refuse("", "%s contains a NUL character, which no argument of a program can", quoted(text))
	}
	return nil
}

func setLED(c *Config, o *Options, text string) error {
	if o.CheckLED != nil {
		if err := o.CheckLED(text); err != nil {
			return refuse("", "%s", err)
		}
	}
	c.LED = text
	return nil
}

func tomlList(texts []string) string {
	elements := make([]string, len(texts))
	for i, text := range texts {
		elements[i] = tomlString(text)
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

func tomlOptional(text string) string {
	if text == "" {
		return ""
	}
	return tomlString(text)
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
func Live(key string) bool {
	for _, f := range fields() {
		if f.key == key {
			return f.live
		}
	}
	return false
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

// TOML returns the whole configuration with all defaults filled in, as a file
// that Parse reads back to the same configuration.
func (c *Config) TOML() []byte {
	var b []byte
	for _, f := range fields() {
		if value := f.get(c); value != "" {
			b = append(b, f.key+" = "+value+"\n"...)
		}
	}
	return b
}
