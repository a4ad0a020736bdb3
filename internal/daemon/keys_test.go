package daemon

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// The keys of the tests: A is that of every fake board, and B has the other mark.
var (
	keyA = testKey(7)
	keyB = testKeyBeside(keyA)
)

// testKeyBeside is a key with another mark than that one.
func testKeyBeside(other config.Key) config.Key {
	for b := byte(1); ; b++ {
		if key := testKey(b); key.Fingerprint().Mark() != other.Fingerprint().Mark() {
			return key
		}
	}
}

// holdsKeys has the boards, one after the other, take these keys as after topdog key.
func holdsKeys(t *testing.T, keys config.Keyring, boards ...*fakeBoard) {
	t.Helper()
	for _, b := range boards {
		b.reload(func(c *config.Config) { c.Keys = keys })
		pass(1200 * time.Millisecond)
		if diff := cmp.Diff(keys.Fingerprints(), b.keysInUse(t)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", b.cfg.Name, diff)
		}
	}
}

func (b *fakeBoard) keysInUse(t *testing.T) (k wire.Keys) {
	t.Helper()
	b.onLoop(t, func() { k = b.group.codec.Keys() })
	return k
}

// five starts five boards, of which the last one leads and has a switch.
func (l *fakeLAN) five() (boards []*fakeBoard, latest func() *fakeDeadman) {
	for n := 1; n <= 5; n++ {
		boards = append(boards, l.board(n, func(_ *config.Config, b *fakeBoard) {
			if n == 5 {
				latest = withSwitch(b)
			}
		}))
	}
	pass(10 * time.Second)
	l.wantHolders(5)
	return boards, latest
}

// undisturbed holds that nobody has changed its role or its leader, asked, or dropped a packet since.
func undisturbed(t *testing.T, boards []*fakeBoard, since []console.Status) {
	t.Helper()
	for i, b := range boards {
		now := b.mustStatus(t)
		assert.Equal(t, since[i].Counters.ChangesByReason, now.Counters.ChangesByReason, "changes of %s", b.cfg.Name)
		dropped, before := now.Counters.DroppedByReason, since[i].Counters.DroppedByReason
		for _, reason := range []wire.DropReason{wire.BadTag, wire.Unproven, wire.Replayed} {
			if id := reason.Identifier(); dropped[id] != before[id] {
				t.Errorf("%s has dropped %d packets: %v", b.cfg.Name, dropped[id]-before[id], reason)
			}
		}
		if len(now.Problems) > 0 {
			t.Errorf("%s has problems: %q", b.cfg.Name, now.Problems)
		}
	}
}

func statuses(t *testing.T, boards []*fakeBoard) (all []console.Status) {
	t.Helper()
	for _, b := range boards {
		all = append(all, b.mustStatus(t))
	}
	return all
}

// TestRotationOfTheKey walks a new key over five boards, and half of the way there and back. Not one
// packet is lost, and the RESIGN of the leader's switch is signed anew.
func TestRotationOfTheKey(t *testing.T) {
	var (
		a, ab = config.Keyring{Signs: keyA}, config.Keyring{Signs: keyA, Also: keyB}
		b, ba = config.Keyring{Signs: keyB}, config.Keyring{Signs: keyB, Also: keyA}
	)
	for _, test := range []struct {
		name string
		walk func(t *testing.T, boards []*fakeBoard)
		end  config.Key
	}{
		{"there", func(t *testing.T, boards []*fakeBoard) {
			holdsKeys(t, ab, boards...)
			holdsKeys(t, ba, boards...)
			holdsKeys(t, b, boards...)
		}, keyB},
		{"back after add", func(t *testing.T, boards []*fakeBoard) {
			holdsKeys(t, ab, boards[:3]...)
			holdsKeys(t, a, boards[:3]...)
		}, keyA},
		{"back after first on the leader and others", func(t *testing.T, boards []*fakeBoard) {
			holdsKeys(t, ab, boards...)
			holdsKeys(t, ba, boards[2:]...)
			holdsKeys(t, ab, boards[2:]...)
			holdsKeys(t, a, boards...)
		}, keyA},
		{"back after drop", func(t *testing.T, boards []*fakeBoard) {
			holdsKeys(t, ab, boards...)
			holdsKeys(t, ba, boards...)
			holdsKeys(t, b, boards[3:]...)
			holdsKeys(t, ba, boards[3:]...)
			holdsKeys(t, ab, boards...)
			holdsKeys(t, a, boards...)
		}, keyA},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				boards, latest := l.five()
				before := statuses(t, boards)
				test.walk(t, boards)
				pass(10 * time.Second)
				l.wantHolders(5)
				undisturbed(t, boards, before)

				// The switch says what the others believe.
				if _, resign := latest().lastPrepared(t); resign.Type != wire.TypeResign || resign.Key != test.end.Fingerprint() {
					t.Errorf("the switch has %v, signed with %v", &resign, resign.Key)
				}
				boards[4].freeze(time.Second)
				latest().untilFired(t)
				pass(time.Millisecond)
				l.wantHolders(4)
			})
		})
	}
}

// TestSigningKeyStays: a key file without the key that the board signs with is not taken over.
func TestSigningKeyStays(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(2 * time.Second)
		for name, change := range map[string]func(*config.Config){
			"another key": func(c *config.Config) { c.Keys = config.Keyring{Signs: keyB} },
			"no key":      func(c *config.Config) { c.Keys, c.KeyFile = config.Keyring{}, config.NoKey },
		} {
			one.reload(change)
			pass(time.Second)
			assert.Equal(t, wire.Keys{Signs: keyA.Fingerprint()}, one.keysInUse(t), "%s", name)
		}
		one.wantLog(t, "is not in the key file any more", 1)
		one.wantLog(t, "it takes a restart", 1)
	})
}

// TestReloadKeys reads the file, and says what is wrong with it.
func TestReloadKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		file := filepath.Join(t.TempDir(), "key")
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.KeyFile = file })
		pass(2 * time.Second)
		for _, step := range []struct {
			content string
			says    string // or the error
		}{
			{string(config.Keyring{Signs: keyA, Also: keyB}.Encode()), fmt.Sprintf("this board signs with the key %v, and accepts the key %v as well", keyA.Fingerprint(), keyB.Fingerprint())},
			{string(config.Keyring{Signs: keyB, Also: keyA}.Encode()), fmt.Sprintf("this board signs with the key %v, and accepts the key %v as well", keyB.Fingerprint(), keyA.Fingerprint())},
			{string(config.Keyring{Signs: keyA}.Encode()), "is not in the key file any more"},
			{"nonsense", "not a hexadecimal digit"},
			{string(config.Keyring{Signs: keyB}.Encode()), fmt.Sprintf("this board signs with the key %v", keyB.Fingerprint())},
		} {
			assert.NoError(t, os.WriteFile(file, []byte(step.content), 0o600))
			done, err := one.ReloadKeys(t.Context())
			if text := fmt.Sprint(done.Text, err); !strings.Contains(text, step.says) {
				t.Errorf("says %q, want %q", text, step.says)
			}
		}
	})
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.KeyFile, c.Keys = config.NoKey, config.Keyring{} })
		if _, err := one.ReloadKeys(t.Context()); err == nil || !strings.Contains(err.Error(), `key_file = "none"`) {
			t.Errorf("without a key: %v", err)
		}
	})
}

// TestKeysOfTheBoards: a board knows which keys the others accept, for a day.
func TestKeysOfTheBoards(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		slowly := func(c *config.Config, _ *fakeBoard) { c.Interval = election.MaxInterval } // or an hour takes seconds with the race detector
		one, two, _ := l.board(1, slowly), l.board(2, slowly), l.board(3, slowly)
		pass(time.Minute)
		holdsKeys(t, config.Keyring{Signs: keyA, Also: keyB}, two)
		pass(2 * time.Second)
		two.Kill()
		pass(time.Hour)
		want := func(later time.Duration, boards ...string) {
			t.Helper()
			var keys console.Keys
			one.get(func() { keys = one.keys(one.now() + later) })
			got := []string{}
			for _, b := range keys.Boards {
				got = append(got, fmt.Sprintf("%s %s live %v signs %s also %s", b.Name, b.Address, b.Live, b.SignsWith, b.AlsoAccepts))
				if heard := time.Duration(b.HeardNs); b.Live != (heard <= election.MaxInterval) {
					t.Errorf("%s was heard %v ago", b.Name, heard)
				}
			}
			assert.Equal(t, boards, got, "boards")
			if keys.SignsWith != keyA.Fingerprint().String() || keys.AlsoAccepts != "" || time.Duration(keys.RunningNs) < time.Hour {
				t.Errorf("this board: %+v", keys)
			}
		}
		a, b := keyA.Fingerprint(), keyB.Fingerprint()
		third := "pi3 10.0.0.3 live %v signs " + fmt.Sprintf("%v also ", a)
		want(0, fmt.Sprintf(third, true), fmt.Sprintf("pi2 10.0.0.2 live false signs %v also %v", a, b))
		want(keysRemembered-time.Minute, fmt.Sprintf(third, false))
	})
}

// TestBoardsAreBounded: the boards that are remembered are as many as a group may have, the newest ones.
func TestBoardsAreBounded(t *testing.T) {
	s := make(boards)
	for id := range wire.ID(2 * wire.MaxBoards) {
		s.of(id+1, time.Duration(id)*time.Second)
	}
	if len(s) != wire.MaxBoards || s[1] != nil || s[2*wire.MaxBoards] == nil || s[wire.MaxBoards+1] == nil {
		t.Errorf("%d boards are remembered", len(s))
	}
}

// forged returns a packet in the name of a board that somebody has made with a key, with one of the last sequence numbers.
func (b *fakeBoard) forged(t *testing.T, key config.Key, kind wire.Type) netio.Datagram {
	t.Helper()
	var m wire.Message
	b.get(func() { m.Header = b.group.header() })
	m.Incarnation, m.Type, m.Sequence = b.group.incarnation, kind, 0xfff00000
	m.Heartbeat.Interval, m.Hello.Interval = 100*time.Millisecond, time.Second
	thief, err := wire.NewCodec(b.cfg.Group, config.Keyring{Signs: key}.Secrets()...)
	assert.NoError(t, err)
	packet, err := thief.Append(nil, &m)
	assert.NoError(t, err)
	return netio.Datagram{Data: packet, From: netip.AddrPortFrom(b.group.local, 9254), Path: netio.PathMulticast, At: b.now(), Known: true}
}

// spent has the others hear one packet with the old key, in the name of a board: whoever has that key can use up
// all its sequence numbers.
func (b *fakeBoard) spent(t *testing.T, key config.Key, kind wire.Type, others []*fakeBoard) {
	t.Helper()
	packet := b.forged(t, key, kind)
	for _, o := range others {
		if o != b {
			o.group.inbox.deliver(packet)
		}
	}
}

// TestKeyDroppedWhileAPacketWaits: a key that is dropped does not count any more for what it has verified and what still
// waits for the loop. Otherwise its holder could leave something behind.
func TestKeyDroppedWhileAPacketWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, _ := l.three()
		boards := []*fakeBoard{one, two}
		holdsKeys(t, config.Keyring{Signs: keyA, Also: keyB}, boards...)
		holdsKeys(t, config.Keyring{Signs: keyB, Also: keyA}, boards...)
		packet := two.forged(t, keyA, wire.TypeHeartbeat)
		var before, after uint64
		one.onLoop(t, func() {
			before = one.group.counts.dropped[wire.BadTag]
			waiting := len(one.group.inbox.messages)
			one.group.inbox.deliver(packet)
			assert.Is(t, waiting+1, len(one.group.inbox.messages), "messages that wait")
			assert.NoError(t, one.changeKeys(config.Keyring{Signs: keyB}))
		})
		pass(time.Millisecond)
		one.onLoop(t, func() { after = one.group.counts.dropped[wire.BadTag] })
		assert.Is(t, before+1, after, "packets with a bad tag")
		pass(2 * time.Second)
		one.onLoop(t, func() {
			if !one.Daemon.hears(two.group.self, one.now()) {
				t.Error("the board in whose name the packet was is not heard any more")
			}
		})
	})
}

// TestSpentSequence: somebody with the old key uses up the sequence numbers of a board, and makes up another one. Nothing
// is left of that when all boards have dropped the key.
func TestSpentSequence(t *testing.T) {
	for _, victim := range []int{5, 4} { // the leader, and its heir
		for _, kind := range []wire.Type{wire.TypeHeartbeat, wire.TypeHello} {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				boards, _ := l.five()
				holdsKeys(t, config.Keyring{Signs: keyA, Also: keyB}, boards...)
				holdsKeys(t, config.Keyring{Signs: keyB, Also: keyA}, boards...)
				boards[victim-1].spent(t, keyA, kind, boards)
				pass(5 * time.Millisecond)
				boards[0].get(func() {
					boards[0].group.boards.of(77, boards[0].now()).key = keyA.Fingerprint()
				})
				for _, b := range boards {
					b.reload(func(c *config.Config) { c.Keys = config.Keyring{Signs: keyB} })
				}
				pass(20 * time.Second)
				l.wantHolders(5)
				for _, b := range boards {
					if s := b.mustStatus(t); s.Leader != "10.0.0.5" || s.Role != "leader" && s.Role != "follower" || len(s.Problems) > 0 {
						t.Errorf("%v of board %d: %s is a %s of %s, %q", kind, victim, b.cfg.Name, s.Role, s.Leader, s.Problems)
					}
				}
				if keys, err := boards[0].Keys(t.Context()); err != nil || len(keys.Boards) != 4 {
					t.Errorf("a board that was made up is remembered: %v, %+v", err, keys.Boards)
				}
				boards[4].Kill()
				pass(2 * time.Second)
				l.wantHolders(4)
			})
		}
	}
}
