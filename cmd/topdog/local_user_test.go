package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// beUser makes the test binary what an ordinary user does to a daemon: an attack, on so many connections to a
// socket, until SIGTERM. It prints a line when it begins.
const beUser = "TOPDOG_BE_USER"

// userMain is the program of such a user.
func userMain(args []string, out io.Writer) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	connections, err := strconv.Atoi(args[1])
	run := userAttacks[args[0]]
	if err != nil || run == nil {
		fmt.Fprintf(os.Stderr, "there is no attack %q\n", args)
		return exitUsage
	}
	// The limit of open files that a user may set himself, as any of his programs can.
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		files.Cur = files.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	}
	u := &localUser{socket: args[2]}
	fmt.Fprintln(out, "begins")
	run(u, ctx, connections)
	fmt.Fprintf(out, "%d times\n", u.done.Load())
	return 0
}

// admitEverybody has all users reach the directory of the board, as they may enter that of the service, and the
// program if it is a file.
func (b *board) admitEverybody(program string) {
	b.c.t.Helper()
	for dir := filepath.Dir(program); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		must(b.c.t, os.Chmod(dir, 0o755))
	}
	must(b.c.t, os.Chmod(b.Dir, 0o755))
}

// attackedBy begins an attack of a user on the board, and returns how to end it.
func (b *board) attackedBy(uid uint32, kind string, connections int) (end func()) {
	b.c.t.Helper()
	var said firstWrite
	begins := said.awaited()
	p, err := b.Start(context.Background(), itself().Path, []string{kind, strconv.Itoa(connections), filepath.Join(b.Dir, "s")},
		netns.Env(beUser+"=1"), netns.User(uid), netns.Stdout(&said), netns.Stderr(b.Log))
	must(b.c.t, err)
	select {
	case <-begins:
	case <-p.Exited():
		b.c.t.Fatalf("user %d does not attack by %s: %v", uid, kind, p.Wait())
	}
	b.Log.Note("user %d attacks by %s on %d connections", uid, kind, connections)
	return func() {
		_ = p.Signal(syscall.SIGTERM)
		_ = p.Wait()
		b.Log.Note("user %d has attacked: %s", uid, said.text.String())
	}
}

// firstWrite keeps what a process prints, and tells when it begins to.
type firstWrite struct {
	text  strings.Builder
	begun func()
}

func (w *firstWrite) awaited() <-chan struct{} {
	begun := make(chan struct{})
	w.begun = sync.OnceFunc(func() { close(begun) })
	return begun
}

func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.begun()
	return w.text.Write(p)
}

// topdogAs runs a command on the board as another user.
func (b *board) topdogAs(uid uint32, args ...string) outcome {
	b.c.t.Helper()
	return execOn(b.c.t, b.c.program, b.Host, append(args, "--config", b.ConfigFile()), netns.User(uid))
}

// strangerID and otherID are users who are no users of this machine.
const strangerID, otherID = 64001, 64002

// An ordinary user asks the leader for its status as fast as he can, with many connections and many processes. The
// address stays, the leader has time for the election, and root gets an answer at once.
func TestUserAsksTooOften(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		const lasts = time.Second
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		leader.admitEverybody(c.program.Path)
		for _, attack := range []struct {
			kind                   string
			processes, connections int
		}{{"ask", 1, 32}, {"ask", 4, 8}, {"knock", 1, 4}} {
			began, busy := time.Now(), leader.cpu()
			var ends []func()
			for range attack.processes {
				ends = append(ends, leader.attackedBy(strangerID, attack.kind, attack.connections))
			}
			var waited []time.Duration
			for asked := began; asked.Sub(began) < lasts; asked = time.Now() {
				if _, err := leader.Status(); err != nil {
					t.Errorf("root is not answered while a user %ss: %v", attack.kind, err)
					break
				}
				waited = append(waited, time.Since(asked))
				c.watchFor(50 * time.Millisecond)
			}
			leader.topdogAs(otherID, "status").want(t, 0, fmt.Sprintf("another user is not answered while a user %ss", attack.kind))
			used := float64(leader.cpu()-busy) / float64(time.Since(began))
			for _, end := range ends {
				end()
			}
			slices.Sort(waited)
			if len(waited) > 0 { // docs/security.md has the figures, and scripts/attack judges them
				t.Logf("while a user %ss, root waits %v, and the leader uses %.0f %% of a processor", attack.kind, waited[len(waited)/2], 100*used)
			}
			c.undisturbed(began, leader)
		}
	})
}

// An ordinary user holds all the connections that he gets, and says nothing. Others are answered, and may have the
// board hand over.
func TestUserSaysNothing(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		for _, connections := range []int{60, 1000} {
			leader := c.agree()
			leader.admitEverybody(c.program.Path)
			began := time.Now()
			end := leader.attackedBy(strangerID, "hold", connections)
			c.watchFor(500 * time.Millisecond) // until they are all there
			for _, who := range []uint32{0, otherID} {
				leader.topdogAs(who, "status").want(t, 0, fmt.Sprintf("user %d is not answered beside %d silent connections", who, connections))
			}
			if o := leader.topdogAs(otherID, "resign"); o.status == 0 || !strings.Contains(o.stderr, "may look, but not have this board do anything: use sudo") {
				t.Errorf("another user resigns: %v", o)
			}
			c.undisturbed(began, leader)
			leader.topdog("resign").want(t, 0, fmt.Sprintf("root cannot have the board resign beside %d silent connections", connections))
			end()
		}
	})
}

// localUser is somebody with an ordinary account on a board. The process that does this must be that user's.
type localUser struct {
	socket string       // of the daemon; the one for everybody is beside it
	done   atomic.Int64 // answers or, where nobody waits for one, connections
}

// question is what a user asks.
const question = "GET /v1/status HTTP/1.1\r\nHost: topdog\r\n\r\n"

// userAttacks are what a user does on so many connections until ctx ends, by name.
var userAttacks = map[string]func(u *localUser, ctx context.Context, connections int){
	"ask":   (*localUser).ask,
	"knock": (*localUser).knock,
	"hold":  (*localUser).hold,
}

// ask asks again as soon as there is an answer, over the same connection if it stays open.
func (u *localUser) ask(ctx context.Context, connections int) {
	u.each(ctx, connections, func(conn net.Conn) {
		answers := bufio.NewReader(conn)
		for {
			_, _ = io.WriteString(conn, question) // there may be an answer though it was not read
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil {
				return
			}
			if answer.StatusCode == http.StatusOK {
				u.done.Add(1)
			}
			if answer.Close {
				return
			}
		}
	})
}

// knock connects, asks and hangs up without waiting for the answer.
func (u *localUser) knock(ctx context.Context, connections int) {
	u.each(ctx, connections, func(conn net.Conn) {
		if _, err := io.WriteString(conn, question); err == nil {
			u.done.Add(1)
		}
	})
}

// hold says nothing, and connects again when the daemon hangs up.
func (u *localUser) hold(ctx context.Context, connections int) {
	u.each(ctx, connections, func(conn net.Conn) {
		u.done.Add(1)
		_, _ = conn.Read(make([]byte, 1))
	})
}

// each keeps so many connections open, and does something with each of them.
func (u *localUser) each(ctx context.Context, connections int, do func(net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := u.connect(ctx)
				if err != nil {
					runtime.Gosched() // the queue of the socket is full
					continue
				}
				release := context.AfterFunc(ctx, func() { conn.Close() })
				do(conn)
				release()
				conn.Close()
			}
		})
	}
}

// connect connects to the socket that is for everybody.
func (u *localUser) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", console.PublicPath(u.socket))
	if errors.Is(err, fs.ErrNotExist) {
		conn, err = d.DialContext(ctx, "unix", u.socket)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", u.socket, err)
	}
	return conn, nil
}
