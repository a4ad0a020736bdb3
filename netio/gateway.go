package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// GatewayAsker asks the default gateway of an interface by ARP whether it is there: by a packet socket of all
// interfaces, which needs CAP_NET_RAW, or by a connection to a holder, which has it. A connection may be inherited.
type GatewayAsker struct {
	connection *connection // nil with a socket
	file       *os.File
	socket     syscall.RawConn
	mu         sync.Mutex // one question at a time
}

// OpenGatewayAsker opens the socket. No packet wakes anybody while nobody asks.
func OpenGatewayAsker() (*GatewayAsker, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("netio: open a packet socket, to ask the gateway by ARP (needs CAP_NET_RAW): %w", err)
	}
	a := &GatewayAsker{file: os.NewFile(uintptr(fd), "gateway")}
	// It hears nothing before it is bound, and so nothing that the filter would have dropped.
	err = setFilter(fd, replyFilter())
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: arpProtocol})
	}
	if err == nil {
		a.socket, err = a.file.SyscallConn()
	}
	if err != nil {
		a.file.Close()
		return nil, fmt.Errorf("netio: open a packet socket, to ask the gateway by ARP: %w", err)
	}
	return a, nil
}

// InheritGatewayAsker takes over the connection that another process has opened, see Holder.OpenGatewaySocket.
func InheritGatewayAsker(fd int) (*GatewayAsker, error) {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || family != unix.AF_UNIX {
		return nil, errors.New("there is no holder that asks the gateway by ARP")
	}
	unix.CloseOnExec(fd)
	return &GatewayAsker{connection: &connection{fd: fd}}, nil
}

// replyFilter passes ARP replies.
func replyFilter() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arpReply, SkipFalse: 1},
		bpf.RetConstant{Val: pass},
		bpf.RetConstant{Val: 0},
	}
}

// Ask asks the default gateway of an interface, and returns when it has answered, or when ctx ends.
func (a *GatewayAsker) Ask(ctx context.Context, iface string) error {
	if a.connection != nil {
		return askGatewayBy(ctx, a.connection, iface)
	}
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return fmt.Errorf("there is no interface %s", iface)
	}
	own, err := ownAddr(link)
	if err != nil {
		return err
	}
	if len(link.HardwareAddr) != len(hardwareAddr{}) {
		return fmt.Errorf("%s has no Ethernet address", iface)
	}
	gateway, err := gatewayOn(link.Index)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ask(ctx, link.Index, request(own, gateway).from(hardwareAddr(link.HardwareAddr)))
}

// ownAddr returns an IPv4 address of this host on a link.
func ownAddr(link *net.Interface) (netip.Addr, error) {
	own, err := prefixesOf(link)
	if err == nil && len(own) == 0 {
		err = fmt.Errorf("%s has no IPv4 address", link.Name)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return own[0].Addr(), nil
}

// prefixesOf returns the IPv4 addresses of this host on a link, each with its subnet.
func prefixesOf(link *net.Interface) (own []netip.Prefix, err error) {
	addrs, err := link.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", link.Name, err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			own = append(own, prefix)
		}
	}
	return own, nil
}

// gatewayOn returns the default gateway on a link.
func gatewayOn(index int) (netip.Addr, error) {
	table, err := OpenNeighbours(index)
	if err != nil {
		return netip.Addr{}, err
	}
	defer table.Close()
	gateway, found, err := table.Gateway()
	if err == nil && !found {
		err = errors.New("there is no default gateway on this interface")
	}
	return gateway, err
}

// ask sends a question, and waits for the answer to it. What was received before is forgotten.
func (a *GatewayAsker) ask(ctx context.Context, index int, question arpPacket) error {
	_ = a.socket.Control(func(fd uintptr) {
		for range drainMax {
			if _, err := readARP(fd); err != nil && err != errNoARP {
				return
			}
		}
	})
	if err := a.file.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = a.file.SetReadDeadline(time.Unix(1, 0)) // which is over
	})
	defer func() {
		if !stop() {
			<-ended // else it could end the next question
		}
	}()
	to := &unix.SockaddrLinklayer{Protocol: arpProtocol, Ifindex: index, Halen: uint8(len(broadcast))}
	copy(to.Addr[:], broadcast[:])
	var failed error
	if err := a.socket.Write(func(fd uintptr) bool {
		failed = unix.Sendto(int(fd), question.append(nil), 0, to)
		return true
	}); err != nil || failed != nil {
		return fmt.Errorf("ask %s: %w", question.targetIP, errors.Join(err, failed))
	}
	if err := a.socket.Read(func(fd uintptr) bool {
		for {
			packet, err := readARP(fd)
			switch {
			case err == errNoARP:
			case err != nil:
				return false
			case packet.senderIP == question.targetIP && packet.targetMAC == question.senderMAC:
				return true
			}
		}
	}); err != nil {
		return fmt.Errorf("the gateway %s does not answer", question.targetIP)
	}
	return nil
}

// errNoARP says that what was read is something else.
var errNoARP = errors.New("no ARP")

// readARP reads one packet, or returns an error of the system if there is none.
func readARP(fd uintptr) (arpPacket, error) {
	var buffer [128]byte
	n, err := unix.Read(int(fd), buffer[:])
	if err != nil {
		return arpPacket{}, err
	}
	packet, err := parseARP(buffer[:n])
	if err != nil {
		return arpPacket{}, errNoARP
	}
	return packet, nil
}

// Close closes the socket, or the connection.
func (a *GatewayAsker) Close() error {
	if a.connection != nil {
		a.connection.close()
		return nil
	}
	return a.file.Close()
}
