package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/boottime"
	"topdog/internal/lab/assert"
)

// enterable has all users reach the sockets of a server. It skips the test if there can be no other user.
func enterable(t *testing.T, s *alone) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may become another user")
	}
	for dir := filepath.Dir(s.path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		assert.NoError(t, os.Chmod(dir, 0o755))
	}
}

// An ordinary user looks by the public socket, and is told what to do when he wants more.
func TestOrdinaryUser(t *testing.T) {
	s := serving(t, fake{resign: func(context.Context) (Handover, error) {
		t.Error("resigned")
		return Handover{}, nil
	}})
	enterable(t, s)
	asUser(t, 65533, 65533, func() {
		client := Dial(s.path)
		_, err := client.Status(t.Context())
		assert.ErrorIs(t, err, nil, "Status")
		_, err = client.Trace(t.Context())
		assert.ErrorIs(t, err, nil, "Trace")
		enough := errors.New("enough")
		assert.ErrorIs(t, client.Follow(t.Context(), WatchOptions{}, func(Transition) error { return enough }), enough, "Follow")
		// That thread alone is the other user.
		_, err = client.connect(t.Context(), false)
		refused(t, err, 403, "may look, but not give this board commands: use sudo", "to act")
	})
}

// The page looks by a socket of its own, where no other user can be in its way. It may do no more than look, and cannot
// even connect to the control socket, where it could be in root's way.
func TestPageLooks(t *testing.T) {
	const page = 65532
	s := serving(t, fake{resign: func(context.Context) (Handover, error) { t.Error("resigned"); return Handover{}, nil }})
	enterable(t, s)
	// The group topdog-page need not exist here.
	if err := unix.Setxattr(pagePath(s.path), "system.posix_acl_access", readableBy(page), 0); errors.Is(err, unix.ENOTSUP) {
		t.Skipf("needs a file system with access control lists: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	assert.NoError(t, os.Remove(PublicPath(s.path)))
	look := func(group uintptr) (err error) {
		asUser(t, 65533, group, func() { _, err = Dial(s.path).Status(t.Context()) })
		return err
	}
	assert.ErrorIs(t, look(page), nil, "the page")
	assert.ErrorIs(t, look(65533), fs.ErrPermission, "another user")
	asUser(t, 65533, page, func() {
		assert.ErrorIs(t, connect(s.path), unix.EACCES, "the page on the control socket")
	})
	_, err := Dial(pagePath(s.path)).Resign(t.Context()) // as root
	refused(t, err, 403, "this socket only answers questions", "to act")
}

// Nothing is done by way of the public socket, whoever asks for it.
func TestPublicSocketActsOnNothing(t *testing.T) {
	s := newTestServer(t, fake{
		resign: func(context.Context) (Handover, error) { t.Error("resigned"); return Handover{}, nil },
		try:    func(TryRequest) (Tried, error) { t.Error("tried"); return Tried{}, nil },
	})
	s.identify = are(0) // root itself
	serve(t, s)
	public := Dial(PublicPath(s.path))
	_, err := public.Status(t.Context())
	assert.ErrorIs(t, err, nil, "Status")
	acts := 0
	for _, r := range s.routes(t.Context()) {
		if r.Methods[0] == http.MethodGet && r.Path != pathScene { // which is too long for everybody
			continue
		}
		acts++
		_, err := ask[Done](t.Context(), public, r.Methods[0], r.Path, nil)
		refused(t, err, 403, "this socket only answers questions; commands go to "+s.path+": use sudo", r.Path)
	}
	if acts < 7 {
		t.Errorf("%d things that act were tried", acts)
	}
}

// Others get their answers while one user holds connections on which he says nothing, however many, and so does
// he himself.
func TestSilentConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("connections are silent for a second")
	}
	impatient := defaultLimits
	impatient.public.patience = 300 * time.Millisecond
	for _, public := range []bool{false, true} {
		s := newAlone(socketPath(t), fake{}, impatient)
		var other atomic.Bool
		var came atomic.Int32
		s.identify = func(syscall.Conn) uint32 {
			came.Add(1)
			if other.Load() {
				return 4712
			}
			return 4711
		}
		serve(t, s)
		path := s.path
		if public {
			path = PublicPath(s.path)
		}
		var crowd sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		for range 60 {
			conn, err := dial(ctx, path)
			assert.NoError(t, err)
			crowd.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		waitFor(t, func() bool { return came.Load() == 60 })
		other.Store(true)
		_, err := Dial(path).Status(ctx)
		assert.ErrorIs(t, err, nil, "another user")
		other.Store(false)
		waitFor(t, func() bool { _, err := Dial(path).Status(ctx); return err == nil })
		leave()
		crowd.Wait()
	}
}

// Who asks too often is told so, though nothing of his request was read, and although he hangs on.
func TestAsksTooOften(t *testing.T) {
	l := defaultLimits
	l.public.each, l.public.patience = pace{burst: 1, every: time.Hour}, time.Millisecond
	s := newAlone(socketPath(t), fake{}, l)
	serve(t, s)
	public := Dial(PublicPath(s.path))
	_, err := public.Status(t.Context())
	assert.NoError(t, err)
	for range 100 {
		_, err := public.Status(t.Context())
		refused(t, err, 503, "asks too often", "again")
	}
	_, err = Dial(s.path).Status(t.Context())
	assert.ErrorIs(t, err, nil, "on the control socket")
}

// Who has all his connections is told so as well.
func TestRefusedUnread(t *testing.T) {
	l := defaultLimits
	l.public.perUser, l.public.each.burst, l.public.all.burst = 1, 1000, 1000
	asked, answer := make(chan struct{}), make(chan struct{})
	s := newAlone(socketPath(t), fake{status: func(context.Context) (Status, error) {
		close(asked)
		<-answer
		return healthy(), nil
	}}, l)
	serve(t, s)
	public := Dial(PublicPath(s.path))
	first := make(chan error)
	go func() { _, err := public.Status(t.Context()); first <- err }()
	<-asked
	for range 100 {
		_, err := public.Status(t.Context())
		refused(t, err, 503, "has as many connections as a user may have", "meanwhile")
	}
	close(answer)
	assert.ErrorIs(t, <-first, nil, "the first one")
}

// Those who wait for their turn are hung up on when the daemon ends, and it does not wait for them.
func TestStopEndsThoseWhoWait(t *testing.T) {
	l := defaultLimits
	l.Linger = time.Hour
	l.public.each, l.public.patience = pace{burst: 1, every: time.Hour}, 24*time.Hour
	s := newAlone(socketPath(t), fake{}, l)
	var came atomic.Int32
	s.identify = func(syscall.Conn) uint32 { came.Add(1); return 4711 }
	stop := serve(t, s)
	var waiting []net.Conn
	for range 5 {
		conn, err := dial(t.Context(), PublicPath(s.path))
		assert.NoError(t, err)
		_, err = io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
		assert.NoError(t, err)
		waiting = append(waiting, conn)
	}
	waitFor(t, func() bool { return came.Load() == 5 })
	answered := 0
	stop()
	for i, conn := range waiting {
		_ = conn.SetReadDeadline(time.Now().Add(deadline))
		answer, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d: %v", i, err)
		}
		switch {
		case strings.HasPrefix(string(answer), "HTTP/1.1 200 "):
			answered++
		case len(answer) > 0: // so a client knows that no daemon runs
			t.Errorf("connection %d: %q, want no answer", i, answer)
		}
		conn.Close()
	}
	if answered > 1 {
		t.Errorf("%d were answered, and it was the turn of one", answered)
	}
}

// A leader is told to nobody with a lease that is over: it has extended it meanwhile. That does not have the backend asked
// for everybody who asks.
func TestLeaseInASharedStatus(t *testing.T) {
	const beat, lease = 100 * time.Millisecond, 105 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		asked, began := 0, time.Now()
		s := newAlone("unused", fake{status: func(context.Context) (Status, error) {
			asked++
			return Status{AsOf: boottime.Now(), LeaseEndsInNs: int64(lease - time.Since(began)%beat)}, nil
		}}, defaultLimits)
		<-time.After(beat * 9 / 10) // the first lease to be told of has less than a beat
		const length = 10 * time.Second
		for since := time.Now(); time.Since(since) < length; <-time.After(time.Millisecond) {
			m, err := s.shared(t.Context(), s.statuses)
			assert.NoError(t, err)
			var told Status
			assert.NoError(t, json.Unmarshal(m.Text, &told))
			if left := told.AsOf.Add(time.Duration(told.LeaseEndsInNs)).Sub(boottime.Now()); left <= 0 {
				t.Fatalf("%v after the first question it has told of a lease that is over since %v", time.Since(since), -left)
			}
		}
		if most := int(length/beat) + 2; asked > most {
			t.Errorf("asked %d times in %v, want %d at most", asked, length, most)
		}
		time.Sleep(time.Second) // until the text is forgotten
	})
}

// However many ask, the backend is asked ten times a second, and again when something has happened or a lease is over.
func TestStatusIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var s *alone
		s = newAlone("unused", fake{status: func(context.Context) (Status, error) {
			asked.Add(1)
			now := boottime.Now()
			<-time.After(time.Millisecond)
			return Status{AsOf: now, Transition: s.Published()}, nil
		}}, defaultLimits)
		began := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for time.Since(began) < time.Second {
					m, err := s.shared(t.Context(), s.statuses)
					if err != nil || boottime.Now().Sub(m.Status.AsOf) > 101*time.Millisecond {
						t.Errorf("%+v, %v", m, err)
					}
					<-time.After(time.Millisecond)
				}
			})
		}
		all.Wait()
		if n := asked.Load(); n < 9 || n > 11 {
			t.Errorf("asked %d times in a second", n)
		}
		for range 5 {
			s.Publish(Transition{Event: EventRoleChanged})
			m, err := s.shared(t.Context(), s.statuses)
			if err != nil || m.Status.Transition != s.Published() {
				t.Errorf("the status is that of transition %d, and there was %d: %v", m.Status.Transition, s.Published(), err)
			}
		}
		if n := asked.Load(); n > 16 {
			t.Errorf("asked %d times for six", n)
		}
		before := asked.Load()
		s.acts.Add(1) // somebody has had the board do something
		if _, err := s.shared(t.Context(), s.statuses); err != nil || asked.Load() != before+1 {
			t.Errorf("the status is that of before: %v", err)
		}
		<-time.After(time.Second)
		s.statuses.mu.Lock()
		defer s.statuses.mu.Unlock()
		if s.statuses.newest != nil {
			t.Error("the text is kept although it is of no use any more")
		}
	})
}
