package rekey

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"topdog/election/roster"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// keyWith is a key that is made of one byte, at least that one, and has that mark.
func keyWith(mark uint8, b byte) config.Key {
	for ; ; b++ {
		ring, err := config.ParseKeys("test", fmt.Appendf(nil, "%x", bytes.Repeat([]byte{b}, wire.KeySize)))
		if err != nil {
			panic(err)
		}
		if ring.Signs.Fingerprint().Mark() == mark {
			return ring.Signs
		}
	}
}

var (
	keyA, keyC = keyWith(0, 1), keyWith(0, 60)
	keyB, keyD = keyWith(1, 1), keyWith(1, 60)

	a, b = keyA.Fingerprint().String(), keyB.Fingerprint().String()

	onlyA    = config.Keyring{Signs: keyA}
	onlyB    = config.Keyring{Signs: keyB}
	aThenB   = config.Keyring{Signs: keyA, Also: keyB}
	bThenA   = config.Keyring{Signs: keyB, Also: keyA}
	stranger = config.Keyring{Signs: keyC, Also: keyD}
)

// fakeDaemon has read the file, and tells of other boards.
type fakeDaemon struct {
	file    string
	has     config.Keyring
	boards  []console.BoardKeys
	running time.Duration
	refuses error
	ignores bool // it says that it has read the file, and has not
	loses   bool // it reads the file, and its answer is lost
	asked   int
	onAsk   func(*fakeDaemon)
}

func (d *fakeDaemon) Keys(context.Context) (console.Keys, error) {
	d.asked++
	if d.onAsk != nil {
		d.onAsk(d)
	}
	signs, also := texts(d.has)
	return console.Keys{SignsWith: signs, AlsoAccepts: also, RunningNs: int64(d.running), Boards: d.boards}, d.notRunning()
}

func (d *fakeDaemon) ReloadKeys(context.Context) (console.Done, error) {
	if d.refuses != nil {
		return console.Done{}, d.refuses
	}
	var err error
	if !d.ignores {
		d.has, err = config.LoadKeys(d.file)
	}
	if err == nil && d.loses {
		err = context.DeadlineExceeded
	}
	return console.Done{Text: "read"}, err
}

func (d *fakeDaemon) notRunning() error {
	if errors.Is(d.refuses, console.ErrNotRunning) {
		return d.refuses
	}
	return nil
}

// other is another board of the group.
func other(name string, live bool, signs, also string) console.BoardKeys {
	at := "10.0.0." + strings.TrimPrefix(name, "pi")
	o := console.BoardKeys{ID: at, Name: name, Address: at, Live: live, SignsWith: signs, AlsoAccepts: also}
	if !live {
		o.HeardNs = int64(3*time.Hour + 2*time.Minute)
	}
	return o
}

// bench is a board with a key file, and the daemon that has read it.
func bench(t *testing.T, keys config.Keyring, boards ...console.BoardKeys) (Board, *fakeDaemon, *strings.Builder) {
	t.Helper()
	d := &fakeDaemon{file: filepath.Join(t.TempDir(), "key"), has: keys, boards: boards, running: 48 * time.Hour}
	assert.NoError(t, os.WriteFile(d.file, keys.Encode(), 0o600))
	out := new(strings.Builder)
	return Board{KeyFile: d.file, Daemon: d, Out: out, Wait: 10 * time.Second}, d, out
}

// wantKeys compares keys, and shows their fingerprints.
func wantKeys(t *testing.T, want, got config.Keyring, who string) {
	t.Helper()
	if got != want {
		t.Errorf("%s has %v, want %v", who, listed(got), listed(want))
	}
}

func (d *fakeDaemon) inFile(t *testing.T) config.Keyring {
	t.Helper()
	keys, err := config.LoadKeys(d.file)
	assert.NoError(t, err)
	return keys
}

func add(came *config.Keyring) func(Board) error {
	return func(b Board) error { return b.Add(context.Background(), came) }
}

func first(f string) func(Board) error {
	return func(b Board) error { return b.First(context.Background(), f) }
}

func drop(f string) func(Board) error {
	return func(b Board) error { return b.Drop(context.Background(), f) }
}

// The steps, and what each one comes to in each state of the file and of the other boards.
func TestSteps(t *testing.T) {
	force := func(step func(Board) error) func(Board) error {
		return func(b Board) error { b.Force = true; return step(b) }
	}
	one := []console.BoardKeys{other("pi2", true, a, "")}
	both := []console.BoardKeys{other("pi2", true, a, b)}
	changed := []console.BoardKeys{other("pi2", true, b, a)}
	done := []console.BoardKeys{other("pi2", true, b, "")}
	for _, test := range []struct {
		name   string
		has    config.Keyring
		boards []console.BoardKeys
		step   func(Board) error
		want   config.Keyring
		says   string // what is printed, or the error
	}{
		{"add what came", onlyA, one, add(&aThenB), aThenB, "added the key " + b},
		{"add what came in the other order", onlyA, one, add(&bThenA), aThenB, "added the key " + b},
		{"add one key that came", onlyA, one, add(&onlyB), aThenB, "added the key " + b},
		{"add it again", aThenB, one, add(&aThenB), aThenB, "already; nothing was changed"},
		{"add it when it signs", bThenA, one, add(&aThenB), bThenA, "already; nothing was changed"},
		{"add of an old program", onlyA, []console.BoardKeys{other("pi2", true, "", "")}, add(&aThenB), onlyA, "pi2 (10.0.0.2) has not told which keys it accepts: upgrade topdog there"},
		{"add all the same", onlyA, []console.BoardKeys{other("pi2", true, "", "")}, force(add(&aThenB)), aThenB, "added"},
		{"add of another group", onlyA, one, add(&stranger), onlyA, "this board has missed two changes"},
		{"add of a third", aThenB, one, add(&config.Keyring{Signs: keyC}), aThenB, "a third one"},
		{"add a new one to two", aThenB, one, add(nil), aThenB, "two keys already"},
		{"add after two changes that were missed", onlyA, one, add(&config.Keyring{Signs: keyC}), onlyA, "topdog init --export | ssh THIS-BOARD sudo topdog init --import --force"},

		{"first", aThenB, both, first(b), bThenA, "signs with the key " + b + " from now on"},
		{"first of whichever", aThenB, both, first(""), aThenB, "to sign with that one, type topdog key first " + b},
		{"first again", bThenA, both, first(b), bThenA, "already; nothing was changed"},
		{"first when it is alone", onlyB, both, first(b), onlyB, "already; nothing was changed"},
		{"first and back", bThenA, changed, first(a), aThenB, "signs with the key " + a},
		{"first of an unknown key", aThenB, both, first("00000000"), aThenB, "has no key 00000000, it has " + a + " and " + b},
		{"first of one", onlyA, one, first(""), onlyA, "one key only"},
		{"first too early", aThenB, one, first(b), aThenB, "pi2 (10.0.0.2) does not accept it. Give it from a board that has it: topdog key export | ssh 10.0.0.2 sudo topdog key add --from -"},
		{"first with one that is off", aThenB, []console.BoardKeys{other("pi2", false, a, "")}, first(b), aThenB, "pi2 (10.0.0.2) is off, heard last 3 h ago; it does not accept it"},
		{"first all the same", aThenB, one, force(first(b)), bThenA, "signs with the key"},

		{"drop", bThenA, changed, drop(""), onlyB, "dropped the key " + a},
		{"drop when another has", bThenA, done, drop(a), onlyB, "dropped the key " + a},
		{"drop again", onlyB, done, drop(a), onlyB, "no key " + a + "; nothing was changed"},
		{"drop of one", onlyB, done, drop(""), onlyB, "one key only"},
		{"drop the one that signs", bThenA, changed, drop(b), bThenA, "signs with the key " + b},
		{"drop too early", bThenA, both, drop(""), bThenA, "pi2 (10.0.0.2) signs with " + a + ": run topdog key first " + b + " there"},
		{"drop with one that is off", bThenA, []console.BoardKeys{other("pi2", false, a, "")}, drop(""), bThenA, "pi2 (10.0.0.2) is off, heard last 3 h ago; it signs with " + a},
		{"drop with an old program", bThenA, []console.BoardKeys{other("pi2", true, "", "")}, drop(""), bThenA, "has not told which keys"},
		{"drop all the same", bThenA, both, force(drop("")), onlyB, "dropped the key " + a},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				board, d, out := bench(t, test.has, test.boards...)
				err := test.step(board)
				said := out.String()
				if err != nil {
					said = err.Error()
				}
				if !strings.Contains(said, test.says) {
					t.Errorf("says %q, want %q", said, test.says)
				}
				wantKeys(t, test.want, d.inFile(t), "the file")
				wantKeys(t, test.want, d.has, "the daemon")
				for _, secret := range append(test.has.Secrets(), test.want.Secrets()...) {
					if strings.Contains(out.String()+said, hex.EncodeToString(secret)) {
						t.Error("a key is in the output")
					}
				}
			})
		})
	}
}

// A new key has another mark than the old one, whatever is drawn first.
func TestAddDraws(t *testing.T) {
	for range 20 { // half of all keys have the mark of the old one
		board, d, _ := bench(t, onlyA)
		assert.NoError(t, board.Add(t.Context(), nil))
		keys := d.inFile(t)
		assert.Is(t, keyA, keys.Signs, "the key that signs")
		assert.Is(t, 1-keyA.Fingerprint().Mark(), keys.Also.Fingerprint().Mark(), "the mark of the new key")
	}
}

// A step goes on as soon as the last board is ready, and says whom it has waited for, once.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, d, out := bench(t, aThenB, other("pi2", true, a, ""), other("pi3", true, a, b))
		d.running = 3*time.Hour + time.Minute
		d.onAsk = func(d *fakeDaemon) {
			if d.asked == 5 {
				d.boards[0].AlsoAccepts = b
			}
		}
		began := time.Now()
		assert.NoError(t, board.First(t.Context(), b))
		want := "waits for\n  pi2 (10.0.0.2) does not accept it. Give it from a board that has it: topdog key export | ssh 10.0.0.2 sudo topdog key add --from -\n" +
			"this daemon has run for 3 h only, and does not know boards that have been off for longer\n" +
			"signs with the key " + b + " from now on\n"
		assert.Equal(t, want, out.String(), "")
		assert.Is(t, 4*askEvery, time.Since(began), "the wait")
	})
}

// A daemon that refuses the keys has the file put back. One that does not run is no reason against
// another key, and one against the other steps.
func TestDaemonRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, d, _ := bench(t, onlyA)
		d.refuses = errors.New("no")
		if board.Add(t.Context(), &onlyB) == nil {
			t.Error("a key was added")
		}
		wantKeys(t, onlyA, d.inFile(t), "the file")
		board.Force = true
		assert.ErrorContains(t, board.Add(t.Context(), &onlyB), "the file is as it was", "by force")
		wantKeys(t, onlyA, d.inFile(t), "the file")
	})
	synctest.Test(t, func(t *testing.T) {
		board, d, out := bench(t, onlyA)
		d.refuses = console.ErrNotRunning
		assert.NoError(t, board.Add(t.Context(), &onlyB))
		wantKeys(t, aThenB, d.inFile(t), "the file")
		if !strings.Contains(out.String(), "reads the key file when it starts") {
			t.Errorf("add says %q", out)
		}
		assert.ErrorContains(t, board.First(t.Context(), b), "--force", "first")
		wantKeys(t, aThenB, d.inFile(t), "the file")
		board.Force = true
		assert.NoError(t, errors.Join(board.First(t.Context(), b), board.Drop(t.Context(), "")))
		wantKeys(t, onlyB, d.inFile(t), "the file")
	})
}

// What counts is which keys the daemon has, whatever it has answered.
func TestDaemonHasOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, d, _ := bench(t, aThenB, other("pi2", true, b, a))
		d.ignores = true
		want := "the file is as it was: it has other keys than " + d.file + ": it signs with " + a + " and accepts " + b
		assert.ErrorContains(t, board.First(t.Context(), b), want, "a daemon that reads another file")
		wantKeys(t, aThenB, d.inFile(t), "the file")
	})
	board, d, _ := bench(t, onlyA)
	d.loses, board.Force = true, true
	assert.ErrorIs(t, board.Add(t.Context(), &onlyB), nil, "an answer that is lost")
	wantKeys(t, aThenB, d.inFile(t), "the file")
	wantKeys(t, aThenB, d.has, "the daemon")
	// A step that was interrupted after it had changed the file is finished by the next one.
	for name, step := range map[string]func(Board) error{"drop": drop(""), "drop by name": drop(b), "first by name": first(a)} {
		board, d, out := bench(t, onlyA)
		d.has = aThenB
		assert.ErrorIs(t, step(board), nil, "%s", name)
		wantKeys(t, onlyA, d.has, "the daemon")
		if !strings.Contains(out.String(), "nothing was changed") {
			t.Errorf("%s: says %q", name, out)
		}
	}
}

// A daemon that has just started does not know whether it has heard all.
func TestJustStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, d, out := bench(t, aThenB)
		began := time.Now()
		d.onAsk = func(d *fakeDaemon) { d.running = time.Since(began) }
		if err := board.First(t.Context(), b); err != nil || !strings.Contains(out.String(), "waits for\n  this daemon has just started, and may not have heard all boards yet") {
			t.Errorf("%v, %q", err, out)
		}
		assert.Is(t, 5*time.Second, time.Since(began), "the wait")
	})
	// Nor if it has heard somebody.
	synctest.Test(t, func(t *testing.T) {
		board, d, _ := bench(t, aThenB, other("pi2", true, a, b))
		began := time.Now()
		d.onAsk = func(d *fakeDaemon) {
			if d.running = time.Since(began); d.running > 2*time.Second && len(d.boards) == 1 {
				d.boards = append(d.boards, other("pi3", true, a, ""))
			}
		}
		assert.ErrorContains(t, board.First(t.Context(), b), "pi3 (10.0.0.3) does not accept it", "with one that is heard later")
	})
	// The boards of a large group are heard one after the other, although every third HELLO is lost.
	for _, boards := range []int{1, 8, 60, wire.MaxBoards} {
		every := roster.HelloInterval(boards)
		for at := 5 * time.Second; at < every; at += askEvery {
			if heard := int(float64(boards-1) * at.Seconds() / every.Seconds() * 2 / 3); at >= acquainted(heard) && heard < boards-1 {
				t.Errorf("%d boards of %d are thought to be all after %v", heard, boards, at)
			}
		}
		if longest := acquainted(boards - 1); longest > 64*time.Second {
			t.Errorf("%d boards: %v", boards, longest)
		}
	}
}

// Owner and mode of the file stay, and a link stays one.
func TestFileStaysWhatItIs(t *testing.T) {
	board, d, _ := bench(t, onlyA)
	link := filepath.Join(t.TempDir(), "link")
	assert.NoError(t, errors.Join(os.Symlink(d.file, link), os.Chmod(d.file, 0o400)))
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 54321
		assert.NoError(t, os.Chown(d.file, 0, group))
	}
	board.KeyFile = link
	assert.NoError(t, board.Add(t.Context(), &onlyB))
	info, err := os.Lstat(d.file)
	assert.NoError(t, err)
	if stat := info.Sys().(*syscall.Stat_t); info.Mode() != 0o400 || int(stat.Uid) != os.Geteuid() || int(stat.Gid) != group {
		t.Errorf("mode %v, owner %d:%d", info.Mode(), stat.Uid, stat.Gid)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(d.file))
	if err != nil || len(left) != 1 {
		t.Errorf("left beside the key: %v, %v", left, err)
	}
}

// Of several who change the same keys at the same moment, one does, and the others say so.
func TestOneOfSeveral(t *testing.T) {
	for range 20 {
		board, d, _ := bench(t, onlyA)
		var replaced atomic.Int32
		var wg sync.WaitGroup
		for _, to := range []config.Keyring{aThenB, onlyB, bThenA, stranger} {
			wg.Go(func() {
				if board.replace(onlyA, to) == nil {
					replaced.Add(1)
				}
			})
		}
		wg.Wait()
		assert.Is(t, 1, replaced.Load(), "those who have changed the file")
		assert.Is(t, true, d.inFile(t) != onlyA, "it is changed")
	}
}

func TestSomebodyElseIsAtIt(t *testing.T) {
	board, d, _ := bench(t, onlyA)
	other, err := os.Open(d.file)
	assert.NoError(t, err)
	defer other.Close()
	assert.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_EX))
	assert.ErrorContains(t, board.replace(onlyA, onlyB), "somebody else changes", "replace")
	wantKeys(t, onlyA, d.inFile(t), "the file")
}

// What somebody else has written meanwhile is not put back.
func TestOthersKeysStay(t *testing.T) {
	board, d, _ := bench(t, onlyA)
	board.Force = true
	d.onAsk = func(d *fakeDaemon) {
		if d.inFile(t) == aThenB {
			assert.NoError(t, os.WriteFile(d.file, onlyB.Encode(), 0o600))
			d.has = onlyB
		}
	}
	assert.ErrorContains(t, board.Add(t.Context(), &onlyB), "was changed meanwhile", "add")
	wantKeys(t, onlyB, d.inFile(t), "the file")
}

func TestShow(t *testing.T) {
	board, d, out := bench(t, aThenB, other("pi2", true, b, a), other("pi3", false, a, ""), other("pi4", true, "", ""))
	d.boards[2].ID = "7"
	assert.NoError(t, board.Show(t.Context()))
	want := a + " signs\n" + b + ` accepted

BOARD                 SIGNS WITH  ACCEPTS TOO  HEARD
pi2 (10.0.0.2)        ` + b + "    " + a + `     live
pi3 (10.0.0.3)        ` + a + `    -            off, last heard 3 h ago
pi4 (id 7, 10.0.0.4)  unknown     -            live
`
	assert.Equal(t, want, out.String(), "")

	out.Reset()
	d.has, d.boards = onlyA, nil
	assert.NoError(t, board.Show(t.Context()))
	want = a + " signs\n" + b + " accepted\nthe daemon has others: it signs with " + a + "; systemctl reload topdog has it read the file\nno other board was heard in the last day\n"
	assert.Equal(t, want, out.String(), "")
}

func TestExport(t *testing.T) {
	board, _, _ := bench(t, aThenB)
	var pipe bytes.Buffer
	assert.NoError(t, board.Export(&pipe))
	keys, err := config.ParseKeys("the pipe", pipe.Bytes())
	assert.NoError(t, err)
	wantKeys(t, aThenB, keys, "what is exported")
}
