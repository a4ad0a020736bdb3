package attack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"topdog/internal/lab/netns"
)

// userVariable makes this program the process of an ordinary user, who does what it says.
const userVariable = "TOPDOG_ATTACK_USER"

// ordinaryUser is somebody without any right on the board: "nobody" of most systems.
const ordinaryUser = 65534

// user is what an ordinary user of a board does.
type user struct {
	Does   string // one of the keys of deeds
	Socket string // of the daemon
	Port   uint16 // of the daemon
	For    time.Duration
}

// deed is one way to be a nuisance. It goes on until ctx ends, and returns how often it was done.
type deed func(ctx context.Context, u user) (times int64)

var deeds = map[string]deed{
	"ask":     onEach(32, ask(true)),
	"connect": onEach(8, ask(false)),
	"silent":  onEach(60, silent),
	"bind":    bind,
}

// PlayUser does what a user does, and ends the process, if this process is that of a user.
func PlayUser() {
	text, ok := os.LookupEnv(userVariable)
	if !ok {
		return
	}
	if err := play(text, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// play does a deed, and writes how often it was done.
func play(text string, out io.Writer) error {
	var u user
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		return err
	}
	if os.Getuid() != ordinaryUser {
		return fmt.Errorf("this process belongs to the user %d, and not to an ordinary one", os.Getuid())
	}
	do, ok := deeds[u.Does]
	if !ok {
		return fmt.Errorf("no user does %q", u.Does)
	}
	ctx, cancel := context.WithTimeout(context.Background(), u.For)
	defer cancel()
	_, err := fmt.Fprintln(out, do(ctx, u))
	return err
}

// userProcess is that of a user on a board.
type userProcess struct {
	*netns.Process
	out, errs strings.Builder
	lasts     time.Duration
}

// startUser lets a user of a board begin.
func startUser(ctx context.Context, h *netns.Host, u user) (*userProcess, error) {
	text, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	p := &userProcess{lasts: u.For}
	// The path of this program may lead through a directory of root's.
	p.Process, err = h.Start(ctx, "/proc/self/exe", nil, netns.Env(userVariable+"="+string(text)), netns.User(ordinaryUser),
		netns.Nice(userNice), netns.Stdout(&p.out), netns.Stderr(&p.errs))
	return p, err
}

// userNice undoes the priority that this program has for the daemons' sake. A user cannot have a better one than 0.
const userNice = 1

// rate waits for the user's end, and returns how often a second it was done.
func (p *userProcess) rate() (float64, error) {
	if err := p.Wait(); err != nil {
		return 0, fmt.Errorf("attack: the user's process: %w: %s", err, p.errs.String())
	}
	times, err := strconv.ParseInt(strings.TrimSpace(p.out.String()), 10, 64)
	return float64(times) / p.lasts.Seconds(), err
}

// connected is what a user does on a connection: the error says why that is over. It counts how often it was done.
type connected func(conn net.Conn, times *atomic.Int64) error

// onEach does something on so many connections, and replaces each that is over.
func onEach(connections int, use connected) deed {
	return func(ctx context.Context, u user) int64 {
		var times atomic.Int64
		var all sync.WaitGroup
		for range connections {
			all.Go(func() {
				for ctx.Err() == nil {
					if connect(ctx, u.Socket, &times, use) != nil {
						wait(ctx, comeAgain) // It is refused, and comes again.
					}
				}
			})
		}
		all.Wait()
		return times.Load()
	}
}

// comeAgain is after what time somebody comes again who was refused.
const comeAgain = time.Millisecond

func connect(ctx context.Context, socket string, times *atomic.Int64, use connected) error {
	conn, err := dialPublic(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return use(conn, times)
}

// ask asks for the status once, or for as long as it can.
func ask(keep bool) connected {
	return func(conn net.Conn, times *atomic.Int64) error {
		answers := bufio.NewReader(conn)
		for {
			if _, err := io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: topdog\r\n\r\n"); err != nil {
				return err
			}
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			if answer.Body.Close(); err != nil {
				return err
			}
			times.Add(1)
			switch {
			case answer.StatusCode != http.StatusOK || answer.Close:
				return errors.New(answer.Status)
			case !keep:
				return nil
			}
		}
	}
}

// silent holds a connection without a word until it is ended.
func silent(conn net.Conn, times *atomic.Int64) error {
	times.Add(1)
	_, _ = io.Copy(io.Discard, conn)
	return io.EOF
}

// dialPublic connects to the socket for everybody, which is beside the daemon's. A daemon without one has
// everybody use its own.
func dialPublic(socket string) (net.Conn, error) {
	conn, err := net.Dial("unix", socket+".public")
	if errors.Is(err, fs.ErrNotExist) {
		conn, err = net.Dial("unix", socket)
	}
	return conn, err
}

// bind takes the daemon's port whenever it is free.
func bind(ctx context.Context, u user) (times int64) {
	for ctx.Err() == nil {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: int(u.Port)})
		if err != nil {
			wait(ctx, comeAgain)
			continue
		}
		times++
		<-ctx.Done()
		conn.Close()
	}
	return times
}
