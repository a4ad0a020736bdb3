package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestDiffering: who differs in what is said on each board alike, as far as there are most.
func TestDiffering(t *testing.T) {
	for _, test := range []struct {
		name    string
		members string // in this order: heartbeat, and the last numbers of the addresses
		want    string // whom a problem is about, and what it says
	}{
		{"all alike", "100ms 100; 100ms 100; 100ms 100", ""},
		{"one alone", "100ms 100", ""},
		{"another address", "100ms 100; 100ms 100; 100ms 101", `3: 10.0.0.3 has address = "10.0.0.101" where the others have "10.0.0.100"`},
		{"this board's", "100ms 101; 100ms 100; 100ms 100", `1: this board has address = "10.0.0.101" where the others have "10.0.0.100"`},
		{"one address more", "100ms 100; 100ms 100 101; 100ms 100", `2: 10.0.0.2 has address = ["10.0.0.100", "10.0.0.101"] where the others have "10.0.0.100"`},
		{"of two", "100ms 100; 1s 100", `2: 10.0.0.2 has heartbeat = "1s" where this board has "100ms"`},
		{"of two, both settings", "100ms 100; 1s 101",
			`2: 10.0.0.2 has address = "10.0.0.101" where this board has "10.0.0.100", and heartbeat = "1s" where this board has "100ms"`},
		{"everybody has others", "100ms 100; 200ms 100; 300ms 100",
			`2: 10.0.0.2 has heartbeat = "200ms" where this board has "100ms"; 3: 10.0.0.3 has heartbeat = "300ms" where this board has "100ms"`},
		{"half of them", "100ms 100; 1s 100; 100ms 100; 1s 100",
			`2: 10.0.0.2 has heartbeat = "1s" where this board has "100ms"; 4: 10.0.0.4 has heartbeat = "1s" where this board has "100ms"`},
	} {
		var members []member
		for i, text := range strings.Split(test.members, "; ") {
			words := strings.Fields(text)
			heartbeat, err := time.ParseDuration(words[0])
			assert.NoError(t, err)
			m := member{id: wire.ID(i + 1), settings: wire.Settings{Heartbeat: heartbeat}}
			for _, last := range words[1:] {
				m.settings.Addresses = append(m.settings.Addresses, netip.MustParseAddr("10.0.0."+last))
			}
			members = append(members, m)
		}
		var got []string
		said := differing(members, func(id wire.ID) string {
			if id == 1 {
				return "this board"
			}
			return fmt.Sprintf("10.0.0.%d", id)
		})
		for i := range members {
			if text, remedy, differs := strings.Cut(said[members[i].id], ": make"); differs {
				assert.Is(t, " the configurations alike, and restart topdog on each board on which you change one", remedy, "%s: the remedy", test.name)
				got = append(got, fmt.Sprintf("%d: %s", members[i].id, text))
			}
		}
		assert.Is(t, test.want, strings.Join(got, "; "), "%s", test.name)
	}
}

// TestOtherSettings: every board names the one whose settings differ, within 5 s, and nobody says that a board holds what it does not hold.
func TestOtherSettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*config.Config) // of board 3
		says   string               // what all say
		held   string               // by whom, as board 1 sees it
		title  string               // the first line of its status
	}{
		{"another address", func(c *config.Config) { c.Addresses = []config.Address{{IP: netip.MustParseAddr("10.0.0.101")}} },
			`has address = "10.0.0.101" where the others have "10.0.0.100"`, "", "nobody holds 10.0.0.100: pi3 (10.0.0.3) leads, and its configuration has 10.0.0.101"},
		{"one address more", func(c *config.Config) {
			c.Addresses = append(c.Addresses, config.Address{IP: netip.MustParseAddr("10.0.0.101")})
		},
			`has address = ["10.0.0.100", "10.0.0.101"] where the others have "10.0.0.100"`, "10.0.0.3", "10.0.0.100 is held by pi3"},
		{"another heartbeat", func(c *config.Config) { c.Interval = time.Second },
			`has heartbeat = "1s" where the others have "100ms"`, "10.0.0.2", "10.0.0.100 is held by pi2"}, // which was sooner
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				boards := []*fakeBoard{l.board(1, nil), l.board(2, nil), l.board(3, func(c *config.Config, _ *fakeBoard) { test.change(c) })}
				pass(5 * time.Second)
				for _, b := range boards {
					called := map[bool]string{true: "this board ", false: "pi3 (10.0.0.3) "}[b.number == 3]
					b.wantProblem(t, called+test.says)
					b.wantLogged(t, called+test.says, 1)
				}
				s := boards[0].mustStatus(t)
				assert.Is(t, test.held, s.HeldBy, "held by")
				assert.Is(t, test.held != "", s.Held(), "it is held")
				title := headline(t, s)
				if !strings.HasPrefix(title, test.title) {
					t.Errorf("the status begins with %q, want %q", title, test.title)
				}
				boards[2].Kill()
				pass(20 * time.Second)
				boards[0].wantProblem(t, "pi3 (10.0.0.3) is not heard: its kernel answers")
				assert.Is(t, 1, len(boards[0].mustStatus(t).Problems), "problems")
			})
		})
	}
}

// headline is the first line of a status, for people.
func headline(t *testing.T, s console.Status) string {
	t.Helper()
	var text strings.Builder
	assert.NoError(t, console.WriteStatus(&text, s, console.Options{}))
	line, _, _ := strings.Cut(text.String(), "\n")
	return line
}

// wantLogged wants so many lines with these words.
func (b *fakeBoard) wantLogged(t *testing.T, words string, times int) {
	t.Helper()
	var lines []string
	b.get(func() { lines = slices.Clone(b.logged) })
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, words) })
	assert.Is(t, times, len(lines), "lines of board %d with %q", b.number, words)
}

// TestOneAddressLess: this board alone has a second address, which the leader does not hold.
func TestOneAddressLess(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) {
			c.Addresses = append(c.Addresses, config.Address{IP: netip.MustParseAddr("10.0.0.101")})
		})
		l.board(2, nil)
		l.board(3, nil)
		pass(5 * time.Second)
		title := headline(t, one.mustStatus(t))
		assert.Is(t, "nobody holds all of 10.0.0.100 and 10.0.0.101: pi3 (10.0.0.3) leads, and its configuration has 10.0.0.100", title, "the first line")
	})
}

// TestSameName: two boards were given one name, as copies of one card have.
func TestSameName(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		named := func(c *config.Config, _ *fakeBoard) { c.Name = "raspberrypi" }
		one, two, three := l.board(1, named), l.board(2, named), l.board(3, nil)
		pass(5 * time.Second)
		for _, b := range []*fakeBoard{one, two, three} {
			b.wantProblem(t, "the boards 10.0.0.1, 10.0.0.2 are all called raspberrypi: give them different host names")
			b.wantLogged(t, "are all called raspberrypi", 1)
		}
	})
}

// TestWrongNetmask: a board has a netmask that leaves the others out, or they have one that leaves it out. Whoever does not answer the
// other says so.
func TestWrongNetmask(t *testing.T) {
	for _, test := range []struct{ name, one, two, says string }{
		{"too narrow", "10.0.0.1/30", "10.0.0.130/24", "packets of the group come from 10.0.0.130, which is in none of this board's networks (10.0.0.0/30), so that board is not answered"},
		{"another subnet", "10.0.1.1/24", "10.0.0.2/24", "packets of the group come from 10.0.0.2, which is in none of this board's networks (10.0.1.0/24)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				at := func(prefix string) func(*config.Config, *fakeBoard) {
					return func(_ *config.Config, b *fakeBoard) {
						b.state.Link.Addrs = []netip.Prefix{netip.MustParsePrefix(prefix)}
					}
				}
				one := l.board(1, at(test.one))
				l.board(2, at(test.two))
				pass(5 * time.Second)
				one.wantProblem(t, test.says)
			})
		})
	}
}

// TestVersionsAreTold: every board knows which version of the program the others have, as far as a HELLO can carry it.
func TestVersionsAreTold(t *testing.T) {
	for version, want := range map[string]string{
		"1.4.0": "1.4.0", "": "", "a\nb": "",
		"v1.4.0-0.20261127150405-0123456789ab+dirty": "v1.4.0-0.20261127150405-01234567",
	} {
		assert.Is(t, want, ProgramName(version), "%q", version)
	}
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two := l.board(1, nil), l.board(2, func(_ *config.Config, b *fakeBoard) { b.version = "1.3.0" })
		pass(5 * time.Second)
		for _, b := range []*fakeBoard{one, two} {
			versions := map[string]string{}
			for _, o := range b.mustStatus(t).Boards {
				versions[o.Name] = o.Version
			}
			assert.Equal(t, map[string]string{"pi1": "", "pi2": "1.3.0"}, versions, "the versions that board %d knows", b.number)
		}
	})
}
