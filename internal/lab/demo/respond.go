package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// responder is the service that the users of a board want: it answers every
// question with the number of the board.
type responder struct {
	conn *net.UDPConn
	wg   sync.WaitGroup
}

// respond starts to answer at an address. The option is set before the socket
// is bound. A board for which reachable is false hears no question.
func respond(at netip.AddrPort, level, option, board int, reachable func() bool) (*responder, error) {
	var optionErr error
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		err := raw.Control(func(fd uintptr) { optionErr = syscall.SetsockoptInt(int(fd), level, option, 1) })
		return errors.Join(err, optionErr)
	}}
	packets, err := config.ListenPacket(context.Background(), "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("answer at %v: %w", at, err)
	}
	r := &responder{conn: packets.(*net.UDPConn)}
	r.wg.Go(func() { r.run(byte(board), reachable) })
	return r, nil
}

func (r *responder) run(board byte, reachable func() bool) {
	buf := make([]byte, answerLen)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || n != questionLen || !reachable():
			continue
		}
		buf[questionLen] = board
		// It fails if the address has just left the board; then nobody answers.
		_, _ = r.conn.WriteToUDPAddrPort(buf, from)
	}
}

func (r *responder) close() error {
	err := r.conn.Close()
	r.wg.Wait()
	return err
}
