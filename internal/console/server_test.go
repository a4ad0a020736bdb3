package console

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

func TestStatusAndResign(t *testing.T) {
	var resigned uint32
	s := serving(t, fake{resign: func(ctx context.Context) (Handover, error) {
		resigned = connectionOf(ctx).user
		return handedOver, nil
	}})
	client := Dial(s.path)
	got, err := client.Status(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, healthy(), got, "the status that was sent")
	happened, err := client.Resign(t.Context())
	assert.NoError(t, err)
	assert.Is(t, handedOver, happened, "Resign")
	assert.Is(t, uint32(os.Getuid()), resigned, "the user that has called, by the kernel")
}

func TestRunAgain(t *testing.T) {
	s := newTestServer(t, fake{})
	serve(t, s)()
	serve(t, s)
	// Ready is closed already, so wait for the socket instead.
	waitFor(t, func() bool { _, err := Dial(s.path).Status(t.Context()); return err == nil })
}

func TestManyAtOnce(t *testing.T) {
	quick := defaultLimits
	quick.control.each, quick.control.all = pace{burst: 1000}, pace{burst: 1000}
	s := newAlone(socketPath(t), fake{}, quick)
	serve(t, s)
	client := Dial(s.path)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 10 {
				s.Publish(Transition{Event: EventRoleChanged})
				_, err := client.Status(t.Context())
				assert.ErrorIs(t, err, nil, "Status")
				_, err = client.Resign(t.Context())
				assert.ErrorIs(t, err, nil, "Resign")
			}
		})
	}
	all.Wait()
}

// TestStopFinishesRequests stops the server while it hands over.
func TestStopFinishesRequests(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := newTestServer(t, fake{resign: func(ctx context.Context) (Handover, error) {
		close(begun)
		select {
		case <-finish:
			return handedOver, ctx.Err()
		case <-ctx.Done():
			return Handover{}, ctx.Err()
		}
	}})
	s.limits.Linger = deadline
	stop := serve(t, s)
	answer := make(chan error, 1)
	go func() {
		happened, err := Dial(s.path).Resign(context.Background())
		if err == nil && happened != handedOver {
			err = errors.New(happened.Text)
		}
		answer <- err
	}()
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	waitFor(t, func() bool { _, err := os.Lstat(s.path); return err != nil })
	close(finish)
	assert.ErrorIs(t, <-answer, nil, "Resign")
	<-stopped
}

// TestStopEndsIdlers has connections that say nothing, or only half of it, which
// must not hold up the end.
func TestStopEndsIdlers(t *testing.T) {
	s := newTestServer(t, fake{status: func(ctx context.Context) (Status, error) {
		<-ctx.Done()
		return Status{}, ctx.Err()
	}})
	s.limits.Linger = 10 * time.Millisecond
	stop := serve(t, s)
	for _, said := range []string{"", "GET /v1/st", "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"} {
		conn, err := net.Dial("unix", s.path)
		assert.NoError(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, said)
	}
	stop()
}
