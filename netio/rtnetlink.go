package netio

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// routeSocket is a socket of rtnetlink(7) for what happens several times a second while this board leads: an address is
// renewed, and the kernel tells everybody of it. vishvananda/netlink allocates 64 KiB for each message that it receives.
type routeSocket struct{ *os.File }

// openRouteSocket opens one that receives what the kernel tells these groups, which are bits. Without any, a read waits no
// longer than answerWithin: the kernel has answered by the time that a request is sent, unless it dropped the answer.
func openRouteSocket(groups uint32) (routeSocket, error) {
	fail := func(fd int, call string, err error) (routeSocket, error) {
		unix.Close(fd)
		return routeSocket{}, os.NewSyscallError(call, err)
	}
	kind := unix.SOCK_RAW | unix.SOCK_CLOEXEC
	if groups != 0 {
		kind |= unix.SOCK_NONBLOCK // so that Close ends a read
	}
	fd, err := unix.Socket(unix.AF_NETLINK, kind, unix.NETLINK_ROUTE)
	if err != nil {
		return routeSocket{}, os.NewSyscallError("socket", err)
	}
	if groups != 0 {
		if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
			return fail(fd, "bind", err)
		}
	} else {
		wait := unix.NsecToTimeval(int64(answerWithin))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
			return fail(fd, "setsockopt", err)
		}
	}
	return routeSocket{os.NewFile(uintptr(fd), "rtnetlink")}, nil
}

// addAddress adds an address to a device, as a /32 with that lifetime. With unix.NLM_F_EXCL it fails if the address is
// there, and with unix.NLM_F_REPLACE it gives that address the lifetime. Without a lifetime the address would become
// permanent, even if it had one before.
func (s routeSocket) addAddress(addr netip.Addr, link int, lifetime time.Duration, flag int) error {
	message := nl.NewIfAddrmsg(unix.AF_INET)
	message.Index, message.Prefixlen = uint32(link), 32
	seconds := uint32(lifetime / time.Second)
	lifetimes := nl.IfaCacheInfo{IfaCacheinfo: unix.IfaCacheinfo{Valid: seconds, Prefered: seconds}}
	request := nl.NewNetlinkRequest(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_ACK|flag)
	request.AddData(message)
	request.AddData(nl.NewRtAttr(unix.IFA_LOCAL, addr.AsSlice()))
	request.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, addr.AsSlice()))
	request.AddData(nl.NewRtAttr(unix.IFA_CACHEINFO, lifetimes.Serialize()))
	return s.exchange(request)
}

// exchange sends a request that wants to be acknowledged, and returns the error of the kernel.
func (s routeSocket) exchange(request *nl.NetlinkRequest) error {
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(int(s.Fd()), request.Serialize(), 0, kernel); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	// The answer is a struct nlmsghdr, the negative error, and what fits of the request.
	var answer [256]byte
	for {
		n, err := unix.Read(int(s.Fd()), answer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("read", err)
		}
		ours := n >= unix.NLMSG_HDRLEN+4 && binary.NativeEndian.Uint32(answer[8:]) == request.Seq
		if !ours || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
			continue // the answer to a request that was given up
		}
		if code := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 {
			return unix.Errno(-code)
		}
		return nil
	}
}

// change is a change of a link, or of an IPv4 address if link is nil.
type change struct {
	link *netlink.LinkUpdate
	addr netlink.AddrUpdate
}

// follow hands over what the kernel tells, until the socket is closed or the kernel has dropped something. It closes the
// channel then.
func (s routeSocket) follow(changes chan<- change) {
	defer close(changes)
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	for message := make([]byte, maxRouteMessage); ; {
		var n int
		var from unix.Sockaddr
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), message, unix.MSG_TRUNC)
			return failed != unix.EAGAIN
		})
		if err != nil || n > len(message) || failed != nil && failed != unix.EINTR {
			return
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); failed != nil || !ok || kernel.Pid != 0 {
			continue // any program may send to a socket like this one
		}
		parts, err := syscall.ParseNetlinkMessage(message[:n])
		for i := 0; err == nil && i < len(parts); i++ {
			if c, ok := readChange(&parts[i]); ok {
				changes <- c
			}
		}
	}
}

// maxRouteMessage is more than the kernel tells of a link at once, unless it has hundreds of virtual functions.
const maxRouteMessage = 32 << 10

// readChange reads what the kernel tells. The message is good until the next one, so nothing may be kept of it.
func readChange(m *syscall.NetlinkMessage) (c change, ok bool) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		header := unix.NlMsghdr(m.Header)
		if len(m.Data) < unix.SizeofIfInfomsg {
			return change{}, false
		}
		link, err := netlink.LinkDeserialize(&header, m.Data)
		if err != nil {
			return change{}, false
		}
		link.Attrs().HardwareAddr = slices.Clone(link.Attrs().HardwareAddr)
		return change{link: &netlink.LinkUpdate{IfInfomsg: *nl.DeserializeIfInfomsg(m.Data), Header: header, Link: link}}, true
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return readAddrChange(m)
	}
	return change{}, false
}

// readAddrChange reads a change of an IPv4 address. Where it has a peer, IFA_ADDRESS is the peer's, and the prefix length too.
func readAddrChange(m *syscall.NetlinkMessage) (c change, ok bool) {
	if len(m.Data) < unix.SizeofIfAddrmsg {
		return change{}, false
	}
	head := nl.DeserializeIfAddrmsg(m.Data)
	attrs, err := nl.ParseRouteAttr(m.Data[head.Len():])
	if err != nil || head.Family != unix.AF_INET {
		return change{}, false
	}
	var local, address net.IP
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.IFA_LOCAL:
			local = slices.Clone(a.Value)
		case unix.IFA_ADDRESS:
			address = slices.Clone(a.Value)
		}
	}
	bits := int(head.Prefixlen)
	switch {
	case local == nil:
		local = address
	case !local.Equal(address):
		bits = 8 * net.IPv4len
	}
	c.addr = netlink.AddrUpdate{LinkIndex: int(head.Index), NewAddr: m.Header.Type == unix.RTM_NEWADDR}
	c.addr.LinkAddress = net.IPNet{IP: local, Mask: net.CIDRMask(bits, 8*net.IPv4len)}
	return c, len(local) == net.IPv4len
}
