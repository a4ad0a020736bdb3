package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
)

// carries reports whether a frame is of this traffic, to or from its port.
func carries(f frame.Frame, t netns.Traffic) bool {
	p, ok := f.Packet()
	if !ok || p.Protocol != t.Protocol {
		return false
	}
	return t.Port == 0 || len(p.Payload) >= 4 &&
		(binary.BigEndian.Uint16(p.Payload) == t.Port || binary.BigEndian.Uint16(p.Payload[2:]) == t.Port)
}

// announces reports whether a frame announces the floating address by ARP: who
// sends it claims to have the address, and asks for no other.
func announces(f frame.Frame) bool {
	a, ok := f.ARP()
	return ok && a.Sender == vip && a.Target == vip
}

// listener hears what some hosts send and get, until it is closed.
type listener struct {
	sockets []*frame.Socket
	wg      sync.WaitGroup
}

// add begins to hear a host. Its frames go to hear, one after the other, as long as that wants more.
func (l *listener) add(host *netns.Host, etherType uint16, hear func(frame.Frame) (more bool)) error {
	c, err := host.Capture(etherType)
	if err != nil {
		return err
	}
	l.sockets = append(l.sockets, c)
	l.wg.Go(func() {
		for {
			f, err := c.Read()
			if err != nil || !hear(f) {
				return
			}
		}
	})
	return nil
}

func (l *listener) close() {
	for _, c := range l.sockets {
		c.Close()
	}
	l.wg.Wait()
}

// firstFrame waits for the first frame that is looked for.
type firstFrame struct {
	listener
	seen chan time.Time
}

// firstFrame begins to look, at the board and at the client, which gets whatever
// the board sends to all.
func (r *rig) firstFrame(b *board) (*firstFrame, error) {
	return firstOf(map[*netns.Host]func(frame.Frame) bool{
		b.Host:         func(f frame.Frame) bool { return !f.Outgoing && !f.IsFrom(b.HardwareAddr) },
		r.LAN.Client(): func(f frame.Frame) bool { return f.IsFrom(b.HardwareAddr) },
	})
}

// hearLeader waits for the leader's next message to all, as the client gets it. In CARP
// all messages come from one hardware address, and in VRRP and CARP none but a leader's.
func (r *rig) hearLeader(leader *board) (*firstFrame, error) {
	traffic := r.sys.traffic()
	return firstOf(map[*netns.Host]func(frame.Frame) bool{
		r.LAN.Client(): func(f frame.Frame) bool {
			return carries(f, traffic) && (traffic.Protocol == protocolVRRP || f.IsFrom(leader.HardwareAddr))
		},
	})
}

// firstOf waits for the first frame on any of the hosts that is wanted there.
func firstOf(wants map[*netns.Host]func(frame.Frame) bool) (*firstFrame, error) {
	w := &firstFrame{seen: make(chan time.Time, len(wants))}
	for host, wanted := range wants {
		err := w.add(host, unix.ETH_P_ALL, func(f frame.Frame) (more bool) {
			if wanted(f) {
				w.seen <- f.At
				return false
			}
			return true
		})
		if err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// wait returns when the first frame came.
func (w *firstFrame) wait(ctx context.Context, most time.Duration) (time.Time, error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case at := <-w.seen:
		return at, nil
	case <-timer.C:
		return time.Time{}, fmt.Errorf("no frame got through within %v", most)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}
