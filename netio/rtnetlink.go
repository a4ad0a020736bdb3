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

var requests atomic.Uint32 // their number is that of the last one

// addAddress adds an address to a device, alone (/32 or /128) and with that lifetime. With unix.NLM_F_EXCL it fails if the address
// is there, and with unix.NLM_F_REPLACE it gives that address the lifetime. Without a lifetime the address would become
// permanent, even if it had one before.
//
// An address of IPv6 is added without Duplicate Address Detection (RFC 4862, section 5.4), which would keep it from use for a
// second, and for ever if the former leader still answered. Whether somebody else has it was asked before. It is deprecated from
// the start, so that no program has it as its source unless it asks for that, or there is no other.
func (s routeSocket) addAddress(addr netip.Addr, link int, lifetime time.Duration, flag int) error {
	seconds := uint32(lifetime / time.Second)
	head := unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: uint8(addr.BitLen()), Index: uint32(link)}
	lifetimes := unix.IfaCacheinfo{Valid: seconds, Prefered: seconds}
	var flags []byte
	if addr.Is6() {
		head.Family, lifetimes.Prefered = unix.AF_INET6, 0
		flags = attribute(unix.IFA_FLAGS, binary.NativeEndian.AppendUint32(nil, unix.IFA_F_NODAD|unix.IFA_F_NOPREFIXROUTE))
	}
	return s.exchange(unix.RTM_NEWADDR, unix.NLM_F_CREATE|flag, slices.Concat(bytesOf(&head),
		attribute(unix.IFA_LOCAL, addr.AsSlice()), attribute(unix.IFA_ADDRESS, addr.AsSlice()),
		attribute(unix.IFA_CACHEINFO, bytesOf(&lifetimes)), flags))
}

// attribute is an attribute of a message, whose length must be a multiple of 4 bytes.
func attribute(kind uint16, value []byte) []byte {
	head := unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(value)), Type: kind}
	return append(bytesOf(&head), value...)
}

// bytesOf returns a copy of a struct of the kernel's.
func bytesOf[T any](value *T) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value)))
}

// exchange sends a request, and returns the error of the kernel.
func (s routeSocket) exchange(kind uint16, flags int, body []byte) error {
	head := unix.NlMsghdr{
		Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind, Seq: requests.Add(1), Flags: uint16(unix.NLM_F_REQUEST | unix.NLM_F_ACK | flags),
	}
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(int(s.Fd()), append(bytesOf(&head), body...), 0, kernel); err != nil {
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
		ours := n >= unix.NLMSG_HDRLEN+4 && binary.NativeEndian.Uint32(answer[8:]) == head.Seq
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
		own := uint16(unix.IFA_LOCAL)
		if head.Family == unix.AF_INET6 {
			own = unix.IFA_ADDRESS
		}
		if attrs[i].Attr.Type == own {
			addr, _ := netip.AddrFromSlice(attrs[i].Value)
			prefix := netip.PrefixFrom(addr, int(head.Prefixlen))
			return slices.ContainsFunc(seen.Local, func(l LocalAddr) bool { return l.Prefix == prefix && l.Index == int(head.Index) })
		}
	}
	return false
}
