package demopage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/seccomp"
)

// nobody is the user and the group of a child: those that own nothing.
const nobody = 65534

// childEndsWithin is how long a child may take to end when its stream has been closed. One that was stopped does not end by itself.
const childEndsWithin = time.Second

// The files that a child finds open.
const (
	childPort = 3 + iota
	childStream
)

// ServeByChild serves the page until ctx ends, as [Serve] does, by a child process without privileges: command
// is a program of which the main function calls [AttendChild] at once.
func ServeByChild(ctx context.Context, command []string, port net.Listener, source Source, o Options) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "stream"), os.NewFile(uintptr(pair[1]), "stream")
	stream, err := net.FileConn(ours) // a copy
	ours.Close()
	defer theirs.Close()
	if err != nil {
		return err
	}
	defer stream.Close()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	child, err := startChild(inner, command, port, theirs, stream.Close)
	if err != nil {
		return fmt.Errorf("start the process of the page as user %d: %w", nobody, err)
	}
	theirs.Close() // else this process would not see that the child has ended
	err = serveLink(inner, stream, source, o)
	cancel()
	ended := child.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, fmt.Errorf("the process of the page has ended: %w", ended))
}

// startChild starts a process that has the port, the stream, and no privileges. When ctx ends it is asked
// to end, and killed if it does not.
func startChild(ctx context.Context, command []string, port net.Listener, stream *os.File, askToEnd func() error) (*exec.Cmd, error) {
	listener, ok := port.(*net.TCPListener)
	if !ok {
		return nil, errors.New("the port is not that of a machine")
	}
	file, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Cancel, c.WaitDelay = askToEnd, childEndsWithin
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of /proc/self/exe
	c.ExtraFiles = []*os.File{file, stream}
	c.Stderr = os.Stderr
	c.Dir = "/"
	c.Env = []string{}
	// Its group is its own: what a terminal sends to this process is not for it. The change of the user
	// takes all capabilities away.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return c, c.Start()
}

// AttendChild is the whole life of a child. It returns when the parent has ended.
func AttendChild() error {
	if kind, err := unix.GetsockoptInt(childStream, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || kind != unix.AF_UNIX {
		return errors.New("this is a part of `topdog demo --page --netns`, which starts it: it is of no use by itself")
	}
	if os.Geteuid() == 0 {
		return errors.New("the process of the page must not have the privileges of root")
	}
	if err := seccomp.RefuseExec(); err != nil { // nor will it ever get any
		return err
	}
	// The parent decides when to go.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	// The name of the process; only for people, so it does not matter if it fails.
	_ = os.WriteFile("/proc/self/comm", []byte("topdog-page"), 0)
	port, err := net.FileListener(os.NewFile(childPort, "port"))
	if err != nil {
		return fmt.Errorf("take the port of the page: %w", err)
	}
	file := os.NewFile(childStream, "stream")
	stream, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return fmt.Errorf("take the stream to the parent: %w", err)
	}
	return attend(port, stream)
}

// attend serves the page until the stream ends.
func attend(port net.Listener, stream net.Conn) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := newLink(ctx, stream, cancel)
	if err != nil {
		return err
	}
	s, err := newServer(l.routes(), func(err error) { fmt.Fprintln(os.Stderr, err) })
	if err != nil {
		return err
	}
	return s.Run(ctx, port)
}
