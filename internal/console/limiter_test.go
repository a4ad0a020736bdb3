package console

import (
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// when is so long after the beginning of a test of turns.
func when(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestPace(t *testing.T) {
	p := pace{burst: 3, every: 100 * time.Millisecond}
	for _, tt := range []struct {
		name     string
		come, at []int // in ms
	}{
		{"a few at once", []int{0, 0, 0}, []int{0, 0, 0}},
		{"more than that", []int{0, 0, 0, 0, 0}, []int{0, 0, 0, 100, 200}},
		{"one at a time", []int{0, 100, 200, 300, 400}, []int{0, 100, 200, 300, 400}},
		{"a little too fast", []int{0, 50, 100, 150, 200, 250}, []int{0, 50, 100, 150, 200, 300}},
		{"again after a pause", []int{0, 0, 0, 1000, 1000, 1000, 1000}, []int{0, 0, 0, 1000, 1000, 1000, 1100}},
	} {
		var full time.Time
		var got []int
		for _, ms := range tt.come {
			var at time.Time
			at, full = p.next(full, when(ms))
			got = append(got, int(at.Sub(when(0)).Milliseconds()))
		}
		assert.Equal(t, tt.at, got, "%s: the turns of those who come at %d", tt.name, tt.come)
	}
}

// One who asks too fast waits, and then is refused, and nobody else is.
func TestTurns(t *testing.T) {
	l := limiter{socketLimits: socketLimits{each: pace{2, 100 * time.Millisecond}, all: pace{10, 10 * time.Millisecond}, patience: 300 * time.Millisecond}}
	var waits []int
	refused := 0
	for range 100 {
		if at, ok := l.turn(4711, when(0)); ok {
			waits = append(waits, int(at.Sub(when(0)).Milliseconds()))
		} else {
			refused++
		}
	}
	if want := []int{0, 0, 100, 200, 300}; !slices.Equal(waits, want) || refused != 95 {
		t.Errorf("a hundred at once wait %d ms, and %d are refused, want %d", waits, refused, want)
	}
	if at, ok := l.turn(4712, when(0)); !ok || at != when(0) {
		t.Errorf("another user waits until %v: %v", at, ok)
	}
	if at, ok := l.turn(4711, when(350)); !ok || at != when(400) {
		t.Errorf("the first one later: %v, %v", at, ok)
	}
	// A crowd of users waits for its turns, and takes no more memory than those who are waiting.
	admitted := 0
	for user := range uint32(100_000) {
		if _, ok := l.turn(user, when(int(user))); ok {
			admitted++
		}
	}
	if admitted < 9_000 || admitted > 11_000 {
		t.Errorf("%d of all users in 100 s, want 100 a second", admitted)
	}
	if len(l.paces) > 2*maxPaces {
		t.Errorf("%d users are remembered", len(l.paces))
	}
}

// newConnection returns a connection of a user.
func newConnection(t *testing.T, l *limiter, user uint32) *connection {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	assert.NoError(t, err)
	assert.NoError(t, unix.Close(ends[1]))
	file := os.NewFile(uintptr(ends[0]), "")
	defer file.Close()
	conn, err := net.FileConn(file)
	assert.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &connection{UnixConn: conn.(*net.UnixConn), limiter: l, user: user}
}

// isOpen reports whether nobody has closed this end of a connection.
func isOpen(c *connection) bool { return c.SetDeadline(time.Time{}) == nil }

// TestTake gives clients one after the other one of four connections, of which each user may have three.
func TestTake(t *testing.T) {
	type caller struct {
		user  uint32
		ms    int  // when it connects
		asked bool // at once
	}
	const a, b, c, d, e = 1, 2, 3, 4, 5
	for _, tt := range []struct {
		name    string
		callers []caller
		want    []bool // who has one in the end
	}{
		{"all have a place", []caller{{a, 0, true}, {b, 0, true}, {b, 0, false}, {c, 0, true}}, []bool{true, true, true, true}},
		{"one has all he may, and the oldest silent one goes", []caller{{a, 0, true}, {a, 1, false}, {a, 2, false}, {a, 500, false}}, []bool{true, false, true, true}},
		{"one has all he may, and all have asked", []caller{{a, 0, true}, {a, 1, true}, {a, 2, true}, {a, 500, true}}, []bool{true, true, true, false}},
		{"whoever has just connected may still ask", []caller{{a, 0, false}, {a, 0, false}, {a, 0, false}, {a, 100, false}}, []bool{true, true, true, false}},
		{"full, and a silent one goes of who has most", []caller{{a, 0, true}, {a, 0, false}, {a, 0, false}, {b, 0, false}, {c, 500, true}}, []bool{true, false, true, true, true}},
		{"full, and the oldest goes of who has most", []caller{{a, 0, true}, {a, 0, true}, {a, 0, true}, {b, 0, true}, {c, 1, true}}, []bool{false, true, true, true, true}},
		{"full, and nobody has more than the next one would", []caller{{a, 0, true}, {b, 0, true}, {c, 0, true}, {d, 0, true}, {e, 1, true}}, []bool{true, true, true, true, false}},
		{"full, and who has most comes again", []caller{{a, 0, true}, {a, 0, true}, {b, 0, true}, {c, 0, true}, {a, 1, true}}, []bool{true, true, true, true, false}},
	} {
		l := limiter{socketLimits: socketLimits{total: 4, perUser: 3}}
		connections := make([]*connection, len(tt.callers))
		for i, c := range tt.callers {
			connections[i] = newConnection(t, &l, c.user)
			if !l.take(connections[i], when(c.ms)) {
				connections[i].Close()
			} else if c.asked {
				l.asked(connections[i])
			}
		}
		got := make([]bool, len(connections))
		for i, c := range connections {
			got[i] = isOpen(c)
		}
		assert.Equal(t, tt.want, got, "%s", tt.name)
	}
}

// A user cannot keep others from their streams.
func TestStreamsOfUsers(t *testing.T) {
	l := limiter{socketLimits: socketLimits{total: 6, perUser: 4}}
	var open []*connection
	follow := func(user uint32) bool {
		c := newConnection(t, &l, user)
		if !l.take(c, when(0)) {
			t.Fatalf("user %d has no connection", user)
		}
		l.asked(c)
		ok := l.follow(c)
		if ok {
			open = append(open, c)
		} else {
			l.leave(c)
		}
		return ok
	}
	for i, tt := range []struct {
		user   uint32
		want   bool
		closed []uint32
	}{
		{1, true, nil}, {1, true, nil},
		{1, false, nil}, // that user has as many streams as one may have
		{2, true, nil}, {2, true, nil}, {3, true, nil}, {3, true, nil},
		{4, true, []uint32{1}}, // all connections are taken, so one is closed of a user with most
	} {
		var closed []uint32
		assert.Is(t, tt.want, follow(tt.user), "stream %d, of user %d", i, tt.user)
		open = slices.DeleteFunc(open, func(c *connection) bool {
			if isOpen(c) {
				return false
			}
			closed = append(closed, c.user)
			return true
		})
		assert.Equal(t, tt.closed, closed, "whose connections are closed for stream %d, of user %d", i, tt.user)
	}
}
