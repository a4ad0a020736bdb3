package netio

import (
	"encoding/binary"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// routeSocket is a socket of rtnetlink(7) for what is asked several times a second while this board leads.
// vishvananda/netlink allocates 64 KiB for each message that it receives.
type routeSocket struct{ *os.File }

func openRouteSocket() (routeSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return routeSocket{}, os.NewSyscallError("socket", err)
	}
	// The kernel has answered by the time that the request is sent. This only guards against an answer that it dropped.
	wait := unix.NsecToTimeval(int64(answerWithin))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		unix.Close(fd)
		return routeSocket{}, os.NewSyscallError("setsockopt", err)
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
