package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/gpio"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/documented"
	"topdog/netio"
)

// edge is the last value of a key that is accepted and the first one that is not,
// on each side that the key has.
type edge struct {
	key      string
	with     string // lines without which the key makes no sense
	accepted []string
	refused  []string
}

var scored = "algorithm = \"score\"\nscore_from = \"command\"\n"

var edges = []edge{
	{
		key: "address",
		accepted: []string{
			`"1.0.0.0"`, `"126.255.255.255"`, `"128.0.0.0"`, `"169.253.255.255"`, `"169.255.0.0"`, `"223.255.255.255"`,
			`"240.0.0.0"`, `"255.255.255.254"`, `"10.0.0.9/1"`, `"10.0.1.0/32"`, `"10.0.1.0/31"`, `"10.0.0.97/30"`,
			list(config.MaxAddresses, func(n int) string { return fmt.Sprintf("10.0.1.%d", n) }),
		},
		refused: []string{
			`""`, `[]`, `"0.255.255.255"`, `"127.0.0.0"`, `"127.255.255.255"`, `"169.254.0.0"`, `"169.254.255.255"`, `"224.0.0.0"`,
			`"239.255.255.255"`, `"255.255.255.255"`, `"10.0.0.1/0"`, `"10.0.0.1/33"`, `"10.0.0.96/30"`, `"10.0.0.99/30"`, `"::1"`,
			list(config.MaxAddresses+1, func(n int) string { return fmt.Sprintf("10.0.1.%d", n) }),
		},
	},
	{
		key:      "interface",
		accepted: []string{`"e"`, text("e", 15), `"..."`, `"lo0"`, `"ü"`},
		refused:  []string{`""`, text("e", 16), `"."`, `".."`, `"lo"`, `"a/b"`, `"a:b"`, `"a b"`, `"a\u0000"`, `"a\u0085"`},
	},
	{
		key:      "group",
		accepted: []string{`"~"`, `"a b"`, text("g", config.MaxGroupBytes)},
		refused:  []string{`""`, `" a"`, `"a "`, `"a\u001f"`, `"a\u007f"`, `"a\u0080"`, text("g", config.MaxGroupBytes+1)},
	},
	{
		key:      "id",
		accepted: []string{`1`, `4294967295`, `"1"`, `"1.0.0.0"`, `"223.255.255.255"`, `"auto"`},
		refused:  []string{`0`, `-1`, `4294967296`, `""`, `"0.0.0.1"`, `"224.0.0.1"`, `"10.0.0.100"`, `"Auto"`},
	},
	// Priority 0 is accepted too, and never leads: TestPriorityZeroNeverLeads.
	{key: "priority", accepted: []string{`1`, fmt.Sprint(election.MaxPriority)}, refused: []string{`-1`, fmt.Sprint(election.MaxPriority + 1)}},
	{key: "preempt", accepted: []string{`true`, `false`}, refused: []string{`0`, `"true"`}},
	{key: "prefer", accepted: []string{`"pi1"`, `["pi1", "pi2"]`, `[]`}, refused: []string{`""`, `1`, `["pi1", "PI1"]`}},
	{key: "preempt_delay", accepted: []string{`"10ms"`, `"1h"`}, refused: []string{`"9ms"`, `"1h1s"`, `"-1s"`, `""`}},
	{key: "take_in_use", accepted: []string{`true`, `false`}, refused: []string{`1`, `"true"`}},
	{
		key:      "heartbeat",
		accepted: []string{`"10ms"`, `"11ms"`, `"9999ms"`, `"10s"`, `"10000000ns"`, `"0.1s"`},
		refused:  []string{`"9ms"`, `"9.999999ms"`, `"10.000001ms"`, `"100.5ms"`, `"9999.5ms"`, `"10001ms"`, `"-100ms"`, `"0"`, `""`},
	},
	{
		key:      "patience",
		accepted: []string{`"auto"`, `"10ms"`, `"10.000001ms"`, `"1m"`},
		refused:  []string{`"9.999999ms"`, `"3.999999ms"`, `"1m0.000001s"`, `"-1s"`, `"0"`, `"100"`, `""`, `"none"`},
	},
	{
		key:      "watch",
		accepted: []string{`"auto"`, `"off"`, `"2ms"`, `"50ms"`},
		refused:  []string{`"1.999999ms"`, `"50.000001ms"`, `"0"`, `"0s"`, `"-1ns"`, `""`, `"none"`},
	},
	// "strict" needs voters, below.
	{key: "algorithm", accepted: quotedAll(literature.Algorithms()), refused: []string{`""`, `"Heir"`, `"raft"`, `"strict"`}},
	{
		key: "voters", with: "algorithm = \"strict\"\n",
		accepted: []string{`["10.0.0.1", "10.0.0.2", 3]`, `["4294967295", 167772161, "10.0.0.2"]`, voterList(election.MaxVoters)},
		refused: []string{`"10.0.0.1"`, `["10.0.0.1", "10.0.0.2"]`, voterList(election.MaxVoters + 1), `["10.0.0.1", "10.0.0.2", "10.0.0.1"]`,
			`["10.0.0.1", 167772161, "10.0.0.2"]`, `["10.0.0.1", "10.0.0.2", 0]`, `["10.0.0.1", "10.0.0.2", 4294967296]`, `["10.0.0.1", "10.0.0.2", "auto"]`,
			`["10.0.0.1", "10.0.0.2", "10.0.0.100"]`, `["10.0.0.1", "10.0.0.2", "10.0.0.3/24"]`},
	},
	{key: "detector", accepted: append(quotedAll(silence.Detectors()), `"auto"`), refused: []string{`""`, `"default"`, `"phi"`}},
	{key: "fanout", accepted: quotedAll(election.Fanouts()), refused: []string{`""`, `"broadcast"`}},
	{
		key: "score_from", with: "algorithm = \"score\"\nscore_command = []\n",
		accepted: []string{`"priority"`, `"age"`},
		refused:  []string{`""`, `"command"`, `"load"`},
	},
	{
		key: "score_command", with: scored,
		accepted: []string{`"/s"`, `["/s", ""]`, list(config.MaxWords, func(int) string { return "/s" }), longPath(4095)},
		refused:  []string{`""`, `"s"`, `["/s", "\u0000"]`, `"/s\u0000"`, list(config.MaxWords+1, func(int) string { return "/s" }), longPath(4096)},
	},
	{key: "start_grace", accepted: []string{`"0s"`, `"10m"`}, refused: []string{`"-1s"`, `"10m0.1s"`, `"10"`, `""`}},
	{
		key:      "multicast",
		accepted: []string{`"224.0.0.0:1"`, `"239.255.255.255:65535"`},
		refused:  []string{`""`, `"223.255.255.255:9254"`, `"240.0.0.0:9254"`, `"224.0.0.254:0"`, `"224.0.0.254:65536"`, `"[ff02::1]:9254"`},
	},
	{
		key: "peers",
		accepted: []string{
			`[]`, `"1.0.0.0"`, `"126.255.255.255"`, `"128.0.0.0"`, `"169.254.0.1"`, `"255.255.255.254"`,
			list(config.MaxPeers, func(n int) string { return fmt.Sprintf("10.0.1.%d", n) }),
		},
		refused: []string{
			`""`, `"0.255.255.255"`, `"127.0.0.0"`, `"127.255.255.255"`, `"224.0.0.0"`, `"255.255.255.255"`, `"10.0.0.100"`, `"10.0.0.2/24"`,
			list(config.MaxPeers+1, func(n int) string { return fmt.Sprintf("10.0.%d.%d", 1+n/255, n%255) }),
		},
	}, {
		key:      "witness",
		accepted: []string{`"auto"`, `"none"`, `["1.0.0.0"]`, list(config.MaxWitnesses, func(n int) string { return fmt.Sprintf("10.0.1.%d", n) })},
		refused: []string{
			`[]`, `""`, `"gateway"`, `"0.255.255.255"`, `"127.0.0.0"`, `"224.0.0.0"`, `"10.0.0.100"`, `["auto", "none"]`,
			list(config.MaxWitnesses+1, func(n int) string { return fmt.Sprintf("10.0.1.%d", n) }),
		},
	},
	{key: "key_file", accepted: []string{`"none"`, `"k"`, longPath(4095)}, refused: []string{`""`, `"~/k"`, `"k\u0000"`, longPath(4096)}},

	{
		key:      "led",
		accepted: []string{`"none"`, `""`, text("line:", 31), text("led:", 63), `"gpiochip32767/32767"`, `"GPIO17:low"`},
		refused:  []string{text("line:", 32), text("led:", 64), `"gpiochip32768/0"`, `"gpiochip0/32768"`, `"gpio17"`, `"a/b"`, `"a\u007f"`, `"17"`},
	},
	{
		key:      "name",
		accepted: []string{`"n"`, text("n", 32), `"` + strings.Repeat("ü", 16) + `"`},
		refused: []string{
			`""`, text("n", 33), `"n` + strings.Repeat("ü", 16) + `"`, `" n"`, `"n "`, `"n\u0000"`, `"n\u001b"`, `"n\u007f"`, `"n\u0085"`,
			`"n\u200b"`, `"n\u2028"`, `"n\ufffd"`,
		},
	},
	{key: "socket", accepted: []string{`"/s"`, longPath(longestSocket)}, refused: []string{`""`, `"s"`, `"/s\u0000"`, longPath(longestSocket + 1)}},
	{key: "log_level", accepted: []string{`"error"`, `"trace"`}, refused: []string{`""`, `"fatal"`, `"panic"`, `"warning"`}},
	{key: "hold", accepted: quotedAll(netio.HoldMethodNames()), refused: []string{`""`, `"tun"`, `"both"`}},
	{
		key:      "page_listen",
		accepted: []string{`":1"`, `":65535"`, `"0.0.0.0:9254"`, `"[::]:9254"`, `"127.0.0.1:9254"`, `"[::1]:9254"`},
		refused: []string{
			`""`, `":"`, `":0"`, `":65536"`, `":09254"`, `":+1"`, `"9254"`, `9254`, `"127.0.0.1"`, `"::1:9254"`, `"[::1]"`, `"localhost:9254"`,
			`"224.0.0.1:9254"`, `"255.255.255.255:9254"`, `"[ff02::1]:9254"`, `"[fe80::1]:9254"`, `"[::1%lo]:9254"`, `"10.0.0.100:9254"`,
		},
	},
	{
		key: "page_hosts",
		accepted: []string{
			`[]`, `"a"`, `"A.b-1.c_d"`, text("h", 63), `"` + strings.Repeat("h.", 126) + `h"`,
			list(config.MaxPageHosts, func(n int) string { return fmt.Sprintf("h%d.lan", n) }),
		},
		refused: []string{
			`""`, `"."`, `"a."`, `"a..b"`, `"-a"`, `"a-"`, `"*.a"`, `"a b"`, `"a:80"`, `"a/b"`, `"ü"`, `"\u212a"`, `"1.2.3"`, `"10.0.0.1"`, `"::1"`, `"[::1]"`,
			text("h", 64), `"` + strings.Repeat("h.", 126) + `hh"`, `["a", "A"]`,
			list(config.MaxPageHosts+1, func(n int) string { return fmt.Sprintf("h%d.lan", n) }),
		},
	},
	{
		key: "check",
		accepted: []string{
			`[]`, `[{ gateway = true }]`, checkList(check.Max), `[{ tcp = "10.0.0.100:1", when = "leading", grace = "1h" }]`,
			`[{ unit = "a.service", every = "50ms", timeout = "10ms", rise = 1, fall = 100 }]`, `[{ unit = "a.service", every = "1h", grace = "0s", when = "leading" }]`,
		},
		refused: []string{
			`{}`, `[{}]`, `[{ gateway = false }]`, checkList(check.Max + 1), `[{ tcp = "10.0.0.100:1" }]`, `[{ tcp = "127.0.0.1:65536" }]`,
			`[{ unit = "a.service", every = "49ms" }]`, `[{ unit = "a.service", every = "1h1ns" }]`, `[{ unit = "a.service", timeout = "9ms" }]`,
			`[{ unit = "a.service", timeout = "1.1s" }]`, `[{ unit = "a.service", rise = 0 }]`, `[{ unit = "a.service", fall = 101 }]`,
			`[{ unit = "a.service", when = "leading", grace = "1h1s" }]`, `[{ http = { url = "http://127.0.0.1/", status = 600 } }]`,
		},
	},
}

// text quotes a text of that many characters behind a prefix that does not count if it
// ends with a colon.
func text(prefix string, length int) string {
	if !strings.HasSuffix(prefix, ":") {
		length -= len(prefix)
	}
	return `"` + prefix + strings.Repeat("x", length) + `"`
}

// longPath quotes a path of that many bytes.
func longPath(length int) string { return text("/", length) }

func list(n int, element func(n int) string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = element(i + 1)
	}
	return "[" + strings.Join(quotedAll(elements), ", ") + "]"
}

// checkList lists so many checks.
func checkList(n int) string {
	checks := make([]string, n)
	for i := range checks {
		checks[i] = fmt.Sprintf(`{ tcp = "127.0.0.1:%d" }`, i+1)
	}
	return "[" + strings.Join(checks, ", ") + "]"
}

// voterList lists so many voters, the first of them by their addresses.
func voterList(n int) string {
	return list(n, func(n int) string { return fmt.Sprintf("10.0.0.%d", n) })
}

func quotedAll(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = `"` + w + `"`
	}
	return all
}

// file is a configuration with one line for the key, and the number of that line.
func (e edge) file(value string) (content string, line int) {
	content = "address = \"10.0.0.100\"\n"
	if e.key == "address" {
		content = ""
	}
	for part := range strings.Lines(e.with) {
		if !strings.HasPrefix(part, e.key+" ") {
			content += part
		}
	}
	return content + e.key + " = " + value + "\n", 1 + strings.Count(content, "\n")
}

// TestWhatIsAcceptedElects feeds the edges of every key through the configuration into
// a running board: alone, it becomes the leader and holds the address, and nothing is
// wrong with it.
func TestWhatIsAcceptedElects(t *testing.T) {
	covered := make([]string, len(edges))
	for i, e := range edges {
		covered[i] = e.key
		for _, value := range e.accepted {
			content, _ := e.file(value)
			t.Run(e.key+"="+value[:min(len(value), 30)], func(t *testing.T) {
				groups, err := config.ParseGroups("/etc/topdog/topdog.toml", []byte(content))
				if err != nil {
					t.Fatalf("refused:\n%v", err)
				}
				inBubble(t, func(t *testing.T, l *fakeLAN) { elects(t, l, groups.First()) })
			})
		}
	}
	assert.Equal(t, documented.ConfigKeys(config.Reference()), covered, "the keys of the configuration, and of this test")
}

// strictly has a fake machine refuse what the real one refuses.
func (b *fakeBoard) strictly(cfg *config.Config) {
	b.openLED = func() (gpio.LED, error) {
		_, err := gpio.ParseSpec(cfg.LED.String())
		return b.led, err
	}
	for _, a := range cfg.Addresses {
		b.openFails = errors.Join(b.openFails, netio.CheckFloating(a.IP))
	}
	b.openFails = errors.Join(b.openFails, netio.CheckGroup(cfg.Multicast))
}

func elects(t *testing.T, l *fakeLAN, cfg *config.Config) {
	configure := func(c *config.Config, b *fakeBoard) {
		keys := c.Keys
		*c = *cfg
		c.Socket = "" // a real one; see TestLongestSocket
		if c.KeyFile != config.NoKey {
			c.Keys = keys
		}
		b.strictly(cfg)
	}
	l.hosts = append(l.hosts, cfg.Witness.Addrs...)
	one := l.board(1, configure)
	for i, id := range cfg.Voters { // without them it is nobody
		if id.Addr().As4() == [4]byte{10, 0, 0, 1} {
			continue
		}
		l.board(i+2, func(c *config.Config, b *fakeBoard) {
			configure(c, b)
			c.ID, c.Priority, c.Name = id, 0, fmt.Sprint("voter ", i)
		})
	}
	pass(2*time.Second + 30*cfg.Interval)
	s := one.mustStatus(t)
	if s.Role != console.RoleLeader || !s.Holding || len(besidesSpares(s)) > 0 || s.Counters.SendErrors > 0 {
		t.Errorf("role %s, holds the address: %v, problems %q, %d datagrams could not be sent", s.Role, s.Holding, s.Problems, s.Counters.SendErrors)
	}
}

// TestWhatIsRefusedHasItsPlace: the first value beyond each edge is refused with the
// name of the key, the line and the column.
func TestWhatIsRefusedHasItsPlace(t *testing.T) {
	for _, e := range edges {
		for _, value := range e.refused {
			content, line := e.file(value)
			_, err := config.ParseGroups("t.toml", []byte(content))
			var problems config.Errors
			switch {
			case err == nil:
				t.Errorf("%s = %s is accepted", e.key, value)
			case !errors.As(err, &problems) || problems[0].Line != line || problems[0].Column <= len(e.key) || !strings.HasPrefix(problems[0].Message, e.key+": "):
				t.Errorf("%s = %s: want a problem of this key on line %d, got:\n%v", e.key, value, line, err)
			}
		}
	}
}

// TestPriorityZeroNeverLeads: the one value that is accepted and does not elect.
func TestPriorityZeroNeverLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Priority = 0 })
		pass(time.Minute)
		if s := one.mustStatus(t); s.Role == console.RoleLeader || s.Holding {
			t.Errorf("it is the %s", s.Role)
		}
	})
}

// longestSocket is the longest path of the control socket, in bytes.
const longestSocket = 100

// TestLongestSocket: beside a path as long as the configuration accepts the kernel lets a program listen
// on the public socket, and beside no longer one.
func TestLongestSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // t.TempDir's path may be too long by itself
	assert.NoError(t, err)
	defer os.RemoveAll(dir)
	for length, want := range map[int]bool{longestSocket: true, longestSocket + 1: false} {
		l, err := net.Listen("unix", console.PublicPath(filepath.Join(dir, strings.Repeat("p", length-len(dir)-1))))
		if got := err == nil; got != want {
			t.Errorf("a path of %d bytes: %v", length, err)
		}
		if err == nil {
			l.Close()
		}
	}
}
