package pi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"topdog/gpio"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/observe"
)

const (
	// AskEvery is how often this machine asks who has the address, and AskTime for how long it does if the lights are not looked
	// at meanwhile. While they are, it asks for longer: a board that pauses or a frame that got lost must not count as an
	// address that nobody has.
	AskEvery = 100 * time.Millisecond
	AskTime  = 500 * time.Millisecond

	// offTime is how long a board may take to end that shuts down.
	offTime = 2 * time.Second

	// askerNumbers and firstAsker are the last octets of the addresses from which boards are asked. A reply says only to which
	// address it goes: at an interval of 20 ms, one that takes longer than 2 s would be taken for that to a later question.
	askerNumbers = 100
	firstAsker   = 100

	// pingInterval is how often Ping asks. Emulated boards pause for longer.
	pingInterval = 50 * time.Millisecond

	// pingID marks the echo requests of this package.
	pingID = 0x7d09

	// anyBoard stands for the board that answers a ping, which does not tell which one it is.
	anyBoard = -1
)

// Ask begins to ask all boards for an address, once every interval.
func (l *Lab) Ask(addr netip.Addr, interval time.Duration) (*observe.Prober, error) {
	probe := observe.Probe{Address: addr, Boards: make(map[int]net.HardwareAddr), ARP: interval}
	for n := 1; n <= l.Natives(); n++ {
		probe.Boards[n] = l.Native(n).HardwareAddr
	}
	for _, b := range l.Boards {
		probe.Boards[b.N] = b.hardwareAddr()
	}
	for n := range askerNumbers {
		probe.From = append(probe.From, address(firstAsker+n).Addr())
	}
	var socket *frame.Socket
	err := l.Segment.Do(func() (err error) {
		socket, err = frame.Open("br0", unix.ETH_P_ARP)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask who has %s: %w", addr, err)
	}
	return observe.StartProber(socket, probe), nil
}

// Holders returns the numbers of the boards that have answered to what was asked in the next d, in ascending order. More than
// one is a fault of topdog, unless the address moved meanwhile.
func Holders(ctx context.Context, p *observe.Prober, d time.Duration) (boards []int, err error) {
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d):
	}
	for _, r := range p.Replies(began) {
		if !r.Asked.Before(began) && !slices.Contains(boards, r.Board) {
			boards = append(boards, r.Board)
		}
	}
	slices.Sort(boards)
	return boards, nil
}

// Ping keeps sending echo requests to an address from this machine, as a user
// of the cluster would notice it. Boards are of number -1 in its reports.
func (l *Lab) Ping(addr netip.Addr) (*observe.Asker, error) {
	var p pings
	err := l.Segment.Do(func() (err error) {
		p.IPConn, err = net.DialIP("ip4:icmp", nil, &net.IPAddr{IP: addr.AsSlice()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start to ping %s: %w", addr, err)
	}
	return observe.StartAsker(p, pingInterval), nil
}

// pings asks by ICMP echo (RFC 792), which every board answers whatever runs on it. The socket gets what comes from the address.
type pings struct{ *net.IPConn }

func (p pings) Ask(number uint32) error {
	_, err := p.Write(frame.Echo(pingID, binary.BigEndian.AppendUint32(nil, number)))
	return err
}

func (p pings) Answer() (board int, err error) {
	for message := make([]byte, 256); ; {
		n, _, err := p.ReadFrom(message)
		if err != nil {
			return 0, err
		}
		if n > 0 && ipv4.ICMPType(message[0]) == ipv4.ICMPTypeEchoReply {
			return anyBoard, nil
		}
	}
}

// View is what can be seen of the cluster from outside.
type View struct {
	Holders  []int         // boards that answer ARP requests for the address
	Emulated []int         // boards that have a light
	Lights   map[int]Watch // of those that are on and matter
}

func (v View) String() string {
	var parts []string
	for _, n := range v.Emulated {
		if w, ok := v.Lights[n]; ok {
			parts = append(parts, fmt.Sprintf("pi%d shows %s", n, w))
		} else {
			parts = append(parts, fmt.Sprintf("pi%d is off, or does not matter", n))
		}
	}
	return fmt.Sprintf("address on %v; %s", v.Holders, strings.Join(parts, "; "))
}

// Leads tells whether the view is that of a cluster led by board n: it alone has
// the address, it alone pulses, all others that run blink as followers. Those that are native show nothing.
func (v View) Leads(n int) bool {
	if _, on := v.Lights[n]; !on && slices.Contains(v.Emulated, n) || !slices.Equal(v.Holders, []int{n}) {
		return false
	}
	for board, w := range v.Lights {
		want := gpio.Follower
		if board == n {
			want = gpio.Leader
		}
		if w.Pattern() != want {
			return false
		}
	}
	return true
}

// Look watches all lights for as long as it takes to tell the patterns apart,
// and asks meanwhile who has the address. The lights of some boards may not matter.
func (s *Stage) Look(without ...int) (v View, err error) {
	lights := make([][]Watch, len(s.Boards))
	var g errgroup.Group
	for i, b := range s.Boards {
		v.Emulated = append(v.Emulated, b.N)
		if !b.On() || slices.Contains(without, b.N) {
			continue
		}
		g.Go(func() (err error) {
			lights[i], err = b.WatchLights(s.Ctx, WatchTime, b.Light())
			if err != nil && b.AwaitOff(s.Ctx, offTime) == nil {
				return nil // One that shuts down ends while somebody looks at it.
			}
			return err
		})
	}
	v.Holders, err = Holders(s.Ctx, s.Prober, 3*AskTime)
	err = errors.Join(err, g.Wait())
	v.Lights = make(map[int]Watch)
	for i, b := range s.Boards {
		if lights[i] != nil {
			v.Lights[b.N] = lights[i][0]
		}
	}
	return v, err
}
