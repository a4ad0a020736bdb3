package netio

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// routeSocket is a socket of rtnetlink(7) for what happens several times a second while this board leads: an address is
// renewed, and the kernel tells everybody of it. vishvananda/netlink allocates 64 KiB for each message that it receives.
type routeSocket struct{ *os.File }

// openRouteSocket opens a socket that receives what the kernel tells these groups, a mask of bits. Without any, a
// read waits no longer than answerWithin: the kernel has answered by the time that a request is sent, unless it
// dropped the answer.
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

// addressRequest is a request to add an IPv4 address, as the kernel wants it.
type addressRequest struct {
	unix.NlMsghdr
	unix.IfAddrmsg
	local, address addressAttr
	cache          unix.RtAttr
	lifetimes      unix.IfaCacheinfo
}

type addressAttr struct {
	unix.RtAttr
	addr [4]byte
}

var requests atomic.Uint32 // their number is that of the last one

// addAddress adds an address to a device, as a /32 with that lifetime. With unix.NLM_F_EXCL it fails if the address is
// there, and with unix.NLM_F_REPLACE it gives that address the lifetime. Without a lifetime the address would become
// permanent, even if it had one before.
func (s routeSocket) addAddress(addr netip.Addr, link int, lifetime time.Duration, flag int) error {
	seconds := uint32(lifetime / time.Second)
	request := addressRequest{
		NlMsghdr: unix.NlMsghdr{
			Len: uint32(unsafe.Sizeof(addressRequest{})), Type: unix.RTM_NEWADDR, Seq: requests.Add(1),
			Flags: uint16(unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | flag),
		},
		IfAddrmsg: unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: 32, Index: uint32(link)},
		local:     addressAttr{unix.RtAttr{Len: uint16(unsafe.Sizeof(addressAttr{})), Type: unix.IFA_LOCAL}, addr.As4()},
		address:   addressAttr{unix.RtAttr{Len: uint16(unsafe.Sizeof(addressAttr{})), Type: unix.IFA_ADDRESS}, addr.As4()},
		cache:     unix.RtAttr{Len: uint16(unix.SizeofRtAttr + unsafe.Sizeof(unix.IfaCacheinfo{})), Type: unix.IFA_CACHEINFO},
		lifetimes: unix.IfaCacheinfo{Valid: seconds, Prefered: seconds},
	}
	return s.exchange(&request)
}

// exchange sends a request that wants to be acknowledged, and returns the error of the kernel.
func (s routeSocket) exchange(request *addressRequest) error {
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	message := unsafe.Slice((*byte)(unsafe.Pointer(request)), unsafe.Sizeof(*request))
	if err := unix.Sendto(int(s.Fd()), message, 0, kernel); err != nil {
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

// await waits until the kernel tells of a change of a link or an address that a snapshot does not show, and takes in
// all else that it has told by then. gone says that an address may have gone, perhaps one that came after the snapshot.
func (s routeSocket) await(seen *Snapshot) (gone bool, err error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return false, err
	}
	var failed error
	changed := false
	var message [512]byte // more than the kernel tells of an address; of a link it is enough that it has changed
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, from, errno := receiveNetlink(fd, message[:])
			switch {
			case errno == unix.EAGAIN:
				return changed
			case errno == unix.EINTR:
			case errno == unix.ENOBUFS: // the kernel has dropped messages, nobody knows which
				changed, gone = true, true
			case errno != 0:
				failed = errno
				return true
			case from != 0 || n < unix.NLMSG_HDRLEN: // any program may send to a socket like this one
			case !isRefresh(message[:min(n, len(message))], seen):
				kind := binary.NativeEndian.Uint16(message[4:])
				changed, gone = true, gone || kind == unix.RTM_DELADDR || kind == unix.RTM_DELLINK
			}
		}
	})
	return gone, errors.Join(err, failed)
}

// isRefresh reports whether a message of the kernel tells of an address that a snapshot has: then its lifetime was renewed.
func isRefresh(message []byte, seen *Snapshot) bool {
	parts, err := syscall.ParseNetlinkMessage(message)
	if err != nil || len(parts) != 1 || parts[0].Header.Type != unix.RTM_NEWADDR || len(parts[0].Data) < unix.SizeofIfAddrmsg {
		return false
	}
	head := nl.DeserializeIfAddrmsg(parts[0].Data)
	attrs, err := nl.ParseRouteAttr(parts[0].Data[unix.SizeofIfAddrmsg:])
	for i := 0; err == nil && i < len(attrs); i++ {
		if attrs[i].Attr.Type == unix.IFA_LOCAL {
			addr, _ := netip.AddrFromSlice(attrs[i].Value)
			prefix := netip.PrefixFrom(addr, int(head.Prefixlen))
			return slices.ContainsFunc(seen.Local, func(l LocalAddr) bool { return l.Prefix == prefix && l.Index == int(head.Index) })
		}
	}
	return false
}
