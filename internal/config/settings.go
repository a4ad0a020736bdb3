package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/internal/health"
	"topdog/netio"
	"topdog/wire"
)

// setting is all that this package knows about one key. The tables of settings drive reading, writing
// and comparing as well as the tests of the documentation, so that a key is added in one place.
type setting struct {
	name    string
	aliases string // what keepalived, corosync and common sense call it
	means   string // what is to be written
	example string // a value as it would be written
	takes   form   // which forms of values, apart from a table
	max     int    // of a list: the greatest number of elements
	filled  bool   // a list must have an element
	live    bool   // SIGHUP applies it, without a restart
	page    bool   // it is for `topdog page`, and the daemon ignores it
	shared  bool   // it must be the same on all boards of a group
	board   bool   // all groups of a board have the same

	parts []setting               // the keys of a table that may be written instead of a text, which is the first of them
	place any                     // a pointer to the value
	set   func(text string) error // checks and stores a value, or one element of a list
}

// settings lists the keys of a configuration in the order of the reference.
func settings(c *Config) []setting { return append(electionSettings(c), boardSettings(c)...) }

// electionSettings lists the keys that say who holds which address.
func electionSettings(c *Config) []setting {
	algorithms := append(literature.Algorithms(), wire.AlgorithmStrict.String())
	detectors := append([]string{silence.DetectorDefault.String()}, silence.Detectors()...)
	return []setting{
		list(&c.Addresses, ParseAddress, func(a Address) string { return a.IP.String() }, setting{
			name: "address", means: "an unused address of the network", example: `"192.168.1.250"`,
			max: MaxAddresses, filled: true, shared: true,
			aliases: "vip vips ip virtual_ip virtual_ipaddress floating_ip addresses"}),
		interfaces(c, setting{
			name: "interface", example: `"eth0"`, filled: true, aliases: "iface nic device dev",
			means: "the name that `ip link` shows, or a list of two (or no such line, for the one whose subnet contains the address)"}),
		scalar(&c.Group, checked(CheckGroup), setting{
			name: "group", means: "1 to 32 letters, digits, signs or inner spaces (ASCII)", example: `"topdog"`,
			shared: true, aliases: "cluster virtual_router_id vrid"}),
		scalar(&c.ID, parseID, setting{
			name: "id", means: `a number from 1 to 4294967295, the own address of the board, or "auto"`, example: `"auto"`,
			takes: aText | aNumber, board: true, aliases: "router_id node_id"}),
		scalar(&c.Priority, parsePriority, setting{
			name: "priority", example: "100", takes: aNumber, live: true, aliases: "prio rank weight",
			means: fmt.Sprintf("a number from 1 to %d, more for a board that should lead, or 0 for one that never should",
				election.MaxPriority)}),
		scalar(&c.Preempt, strconv.ParseBool, setting{
			name: "preempt", example: "false", takes: aBool, live: true, aliases: "nopreempt"}),
		list(&c.Prefer, checked(printableText(wire.MaxName)), strings.ToLower, setting{
			name: "prefer", means: "the name of the board that should lead, or a list of such names, the best first", example: `"pi1"`,
			max: maxPreferred, live: true, aliases: "preferred prefers home"}),
		scalar(&c.PreemptDelay, orAuto(duration("preempt_delay", election.CheckPreemptDelay)), setting{
			name: "preempt_delay", means: fromTo(election.MinPreemptDelay, election.MaxPreemptDelay) + `, or "auto"`,
			example: `"auto"`, live: true}),
		scalar(&c.TakeInUse, strconv.ParseBool, setting{name: "take_in_use", example: "false", takes: aBool}),
		scalar(&c.Interval, duration("heartbeat", election.CheckInterval), setting{
			name: "heartbeat", means: fromTo(election.MinInterval, election.MaxInterval), example: `"100ms"`,
			shared: true, aliases: "interval advert_int"}),
		scalar(&c.Patience, orAuto(duration("patience", atLeastSomething)), setting{
			name: "patience", example: `"auto"`, shared: true,
			means: fmt.Sprintf(`a duration from a tenth of the heartbeat to %q, or "auto"`, short(election.MaxPatience))}),
		scalar(&c.Watch, orWord(off, election.NoWatch, orAuto(duration("watch", atLeastSomething))), setting{
			name: "watch", example: `"auto"`,
			means: fmt.Sprintf(`a duration from %q to half of the heartbeat, "auto", or "off"`, short(election.MinWatch))}),
		choice(&c.Algorithm, algorithms, literature.AlgorithmNamed, setting{name: "algorithm", shared: true}),
		voters(c, setting{
			name: "voters", example: `["192.168.1.11", "192.168.1.12", "192.168.1.13"]`, shared: true,
			means: "the ids of the voters: their own addresses, or the numbers that they have as their ids"}),
		choice(&c.Detector, detectors, silence.DetectorNamed, setting{
			name: "detector", aliases: "failure_detector suspicion"}),
		choice(&c.Fanout, election.Fanouts(), election.FanoutNamed, setting{name: "fanout", aliases: "unicast delivery"}),
		choice(&c.ScoreSource, election.ScoreSources(), election.ScoreSourceNamed, setting{
			name: "score_from", shared: true, aliases: "importance measure score"}),
		program(func(word string) { c.ScoreCommand = append(c.ScoreCommand, word) }, setting{
			name: "score_command", means: "the program with its whole path",
			example: `["/usr/local/bin/my-score", "--verbose"]`, place: &c.ScoreCommand, live: true,
			aliases: "script command score_script measure_command track_script"}),
	}
}

// boardSettings lists the other keys.
func boardSettings(c *Config) []setting {
	return []setting{
		scalar(&c.StartGrace, duration("start_grace", between(0, health.MaxStartGrace)), setting{
			name: "start_grace", means: fromTo(0, health.MaxStartGrace), example: `"10s"`, live: true}),
		scalar(&c.Multicast, parseMulticast, setting{
			name: "multicast", means: "an IPv4 multicast address and a UDP port", example: `"224.0.0.254:9254"`,
			shared: true, aliases: "mcast mcast_group port"}),
		list(&c.Peers, parsePeer, netip.Addr.String, setting{
			name: "peers", means: "the own addresses of other boards", example: `["192.168.1.11", "192.168.1.12"]`,
			max: MaxPeers, live: true, aliases: "nodes boards members unicast_peer"}),
		witnesses(c, setting{
			name: "witness", means: `"auto", "none", or the address of a host that is always on`, example: `"auto"`,
			filled: true, live: true}),
		scalar(&c.KeyFile, c.parseKeyFile, setting{
			name: "key_file", means: `the path of the key file, or "none" to run without authentication`,
			example: `"/etc/topdog/key"`, live: true, board: true,
			aliases: "key secret password passphrase auth_pass psk auth"}),
		scalar(&c.LED, parseLED, setting{name: "led", example: `"ACT"`, live: true, aliases: "gpio pin light"}),
		scalar(&c.Name, checked(printableText(wire.MaxName)), setting{
			name: "name", means: "at most 32 bytes of printable text", example: `"shelf-3"`, board: true, aliases: "hostname host_name"}),
		scalar(&c.Socket, checked(checkSocket), setting{
			name: "socket", means: "an absolute path", example: `"/run/topdog/topdog.sock"`, board: true}),
		choice(&c.LogLevel, logLevels, logLevelNamed, setting{
			name: "log_level", example: `"info"`, live: true, board: true, aliases: "log loglevel verbosity"}),
		choice(&c.Hold, netio.HoldMethodNames(), netio.HoldMethodNamed, setting{name: "hold"}),
		scalar(&c.PageListen, ParseListen, setting{
			name: "page_listen", means: `a TCP port of all addresses, or of one, such as "192.168.1.11:9254"`,
			example: `":9254"`, page: true, board: true, aliases: "listen bind page page_port"}),
		list(&c.PageHosts, parsePageHost, strings.Clone, setting{
			name: "page_hosts", means: "names of this board, without http:// and without a path",
			example: `["topdog.lan", "pi.example.org"]`, max: MaxPageHosts, page: true, board: true, aliases: "hosts page_host"}),
		{name: checkKey, example: `[{ unit = "nginx.service" }]`, takes: aList | aTable, place: &c.Checks, live: true,
			aliases: "checks track_process health_check healthcheck"},
	}
}

// scalar completes the setting of one value, which parse makes from its text. The key takes a text
// in quotes unless takes says otherwise.
func scalar[T any](place *T, parse func(string) (T, error), k setting) setting {
	if k.takes == 0 {
		k.takes = aText
	}
	k.place = place
	k.set = func(text string) error {
		parsed, err := parse(text)
		if err == nil {
			*place = parsed
		}
		return err
	}
	return k
}

// list completes the setting of a list of texts, of which no two may have the same name.
func list[T any](place *[]T, parse func(string) (T, error), name func(T) string, k setting) setting {
	one := func(text string) ([]T, error) {
		parsed, err := parse(text)
		if err != nil {
			return nil, err
		}
		for _, other := range *place {
			if name(other) == name(parsed) {
				return nil, refuse("delete one of the two", "%s is listed twice", name(parsed))
			}
		}
		return append(*place, parsed), nil
	}
	k.takes = aText | aList
	return scalar(place, one, k)
}

// choice completes the setting of a key that takes one of these words. The first of them is the
// example unless there is one already.
func choice[T any](place *T, words []string, lookup func(string) (T, bool), k setting) setting {
	if k.example == "" {
		k.example = Quote(words[0])
	}
	return scalar(place, func(word string) (T, error) {
		v, _ := lookup(word)
		return v, oneOf(word, words)
	}, k)
}

// program completes the setting of a program and its arguments. It passes every word to keep, even one
// that it refuses: the file is refused as a whole.
func program(keep func(word string), k setting) setting {
	k.takes, k.max = aText|aList, MaxWords
	first := true
	k.set = func(text string) error {
		keep(text)
		switch {
		case first:
			first = false
			return checkProgram(k.name, text)
		case strings.ContainsRune(text, 0):
			return fmt.Errorf("%s contains a NUL character, which no argument of a program can", quoted(text))
		}
		return nil
	}
	return k
}

// checked is for texts that are stored as they are written.
func checked(check func(string) error) func(string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

// Quote writes text as a TOML basic string (TOML 1.0, "String").
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// QuoteAll writes texts as a TOML array.
func QuoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// find returns the setting of a key; nil if there is none.
func find(all []setting, name string) *setting {
	i := slices.IndexFunc(all, func(k setting) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// named returns the setting of a key; an empty one if there is no such key.
func named(key string) setting {
	if k := find(settings(new(Config)), key); k != nil {
		return *k
	}
	return setting{}
}

func names(all []setting) []string {
	keys := make([]string, len(all))
	for i, k := range all {
		keys[i] = k.name
	}
	return keys
}

// Live reports whether a running daemon can take over a new value of key, on
// SIGHUP, without a restart. The others are part of what the boards of a group
// agree on, or name something that is opened once.
func Live(key string) bool { return named(key).live }

// OfPage reports whether the key is for `topdog page`, which is another process than the daemon: it
// takes a new value when it is started again.
func OfPage(key string) bool { return named(key).page }

// OfBoard reports whether all groups of a board have the same value of key, which therefore stands above the first [[group]].
func OfBoard(key string) bool { return named(key).board }

// Shared reports whether all boards of a group must have the same value of key. The
// other keys are each board's own business.
func Shared(key string) bool { return named(key).shared }

// ApplyLive takes over the values of the live keys of another configuration, and those of the keys
// that mean nothing to the daemon.
func (c *Config) ApplyLive(from *Config) {
	theirs := settings(from)
	for i, k := range settings(c) {
		if k.live || k.page {
			reflect.ValueOf(k.place).Elem().Set(reflect.ValueOf(theirs[i].place).Elem())
		}
	}
}

// Changed returns the keys whose values differ between c and other, in the
// order of the reference. [Live] says which of them need no restart.
func (c *Config) Changed(other *Config) []string {
	var changed []string
	theirs := settings(other)
	for i, k := range settings(c) {
		if !reflect.DeepEqual(k.place, theirs[i].place) {
			changed = append(changed, k.name)
		}
	}
	return changed
}
