package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A Neighbor Solicitation or Advertisement with its IPv6 header, in bytes (RFC 8200, section 3; RFC 4861, sections 4.3, 4.4 and
// 4.6.1):
//
//	 0  4  version and traffic class
//	 4  2  payload length          of what follows the header
//	 6  1  next header             58, ICMPv6
//	 7  1  hop limit               255: no router has forwarded it
//	 8 16  source                  :: in a probe
//	24 16  destination
//	40  1  type                    135, solicitation; 136, advertisement
//	41  1  code                    0
//	42  2  checksum
//	44  4  flags                   of an advertisement
//	48 16  target                  the address that is asked for, or advertised
//	64  1  type of the option      1, the link-layer address of the source; 2, of the target
//	65  1  length of the option    1, in units of 8 bytes
//	66  6  Ethernet address
//
// A probe has no option. Others may send more options.
const (
	ip6Bytes    = 40
	ndpBytes    = ip6Bytes + 24 // without options
	ndpHopLimit = 255

	ip6Payload, ip6Next, ip6HopLimit, ip6Source, ip6Target        = 4, 6, 7, 8, 24
	ndpKindAt, ndpCodeAt, ndpChecksumAt, ndpFlagsAt, ndpSubjectAt = 40, 41, 42, 44, 48
)

// ndpKind is what a message is, by its ICMPv6 type.
type ndpKind byte

const (
	solicitation  ndpKind = 135
	advertisement ndpKind = 136
)

// The flags of an advertisement.
const (
	ndpRouter    byte = 0x80 // the sender forwards packets
	ndpSolicited byte = 0x40 // it answers a solicitation
	ndpOverride  byte = 0x20 // it replaces what the receiver knew
)

// The types of the options that have an Ethernet address.
const (
	ndpSourceOption = 1
	ndpTargetOption = 2
)

// allNodes is the multicast address of all machines on the link.
var allNodes = netip.MustParseAddr("ff02::1")

// ndpMessage is a message of Neighbor Discovery about one address.
type ndpMessage struct {
	kind                ndpKind
	source, destination netip.Addr
	flags               byte         // of an advertisement
	target              netip.Addr   // the address that it is about
	mac                 hardwareAddr // of the sender, as its option says; zero without the option
}

// solicitedNode returns the multicast address at which a machine with that address is asked for it (RFC 4291, section 2.7.1).
func solicitedNode(addr netip.Addr) netip.Addr {
	group, a := [16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff}, addr.As16()
	copy(group[13:], a[13:])
	return netip.AddrFrom16(group)
}

// etherMulticast returns the Ethernet address of an IPv6 multicast address (RFC 2464, section 7).
func etherMulticast(group netip.Addr) hardwareAddr {
	g := group.As16()
	return hardwareAddr{0x33, 0x33, g[12], g[13], g[14], g[15]}
}

// probe6 asks whether anybody has an address without claiming it: from the unspecified address, so that no neighbour's cache
// changes (RFC 4862, section 5.4.2).
func probe6(addr netip.Addr) ndpMessage {
	return ndpMessage{kind: solicitation, source: netip.IPv6Unspecified(), destination: solicitedNode(addr), target: addr}
}

// advertise tells everybody unasked that an address is at this interface (RFC 4861, section 7.2.6). Override has neighbours
// replace what they know.
func advertise(addr netip.Addr, router bool) ndpMessage {
	m := ndpMessage{kind: advertisement, source: addr, destination: allNodes, target: addr, flags: ndpOverride}
	if router {
		m.flags |= ndpRouter
	}
	return m
}

// answerTo answers a solicitation (RFC 4861, section 7.2.4). A probe is answered to everybody, since its sender has no address.
func answerTo(asked ndpMessage, router bool) ndpMessage {
	m := advertise(asked.target, router)
	if !asked.source.IsUnspecified() {
		m.destination = asked.source
		m.flags |= ndpSolicited
	}
	return m
}

// conflictsWith reports whether a message of another host shows that the host has addr, or is about to take it: the message
// speaks as addr, or probes for it.
func (m ndpMessage) conflictsWith(addr netip.Addr) bool {
	return m.speaksAs(addr) || m.kind == solicitation && m.source.IsUnspecified() && m.target == addr
}

// speaksAs reports whether a message shows that its sender has addr.
func (m ndpMessage) speaksAs(addr netip.Addr) bool {
	return m.source == addr || m.kind == advertisement && m.target == addr
}

func (m ndpMessage) appendFrom(b []byte, own hardwareAddr) []byte {
	at := len(b)
	b = append(b, make([]byte, ndpBytes)...)
	p := b[at:]
	source, destination, target := m.source.As16(), m.destination.As16(), m.target.As16()
	p[0] = 6 << 4
	p[ip6Next], p[ip6HopLimit] = unix.IPPROTO_ICMPV6, ndpHopLimit
	copy(p[ip6Source:], source[:])
	copy(p[ip6Target:], destination[:])
	p[ndpKindAt], p[ndpFlagsAt] = byte(m.kind), m.flags
	copy(p[ndpSubjectAt:], target[:])
	switch {
	case m.kind == advertisement:
		b = append(append(b, ndpTargetOption, 1), own[:]...)
	case !m.source.IsUnspecified():
		b = append(append(b, ndpSourceOption, 1), own[:]...)
	}
	p = b[at:]
	binary.BigEndian.PutUint16(p[ip6Payload:], uint16(len(p)-ip6Bytes))
	binary.BigEndian.PutUint16(p[ndpChecksumAt:], ^checksum6(p))
	return b
}

// checksum6 sums up a packet of ICMPv6 with its pseudo-header (RFC 4443, section 2.3). It is 0xffff for one whose checksum is
// right.
func checksum6(p []byte) uint16 {
	sum := uint32(len(p)-ip6Bytes) + unix.IPPROTO_ICMPV6
	for p = p[ip6Source:]; len(p) > 1; p = p[2:] {
		sum += uint32(binary.BigEndian.Uint16(p))
	}
	if len(p) == 1 {
		sum += uint32(p[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

var (
	errNDPShort   = errors.New("too short for a message of Neighbor Discovery")
	errNDPKind    = errors.New("no solicitation and no advertisement of Neighbor Discovery")
	errNDPInvalid = errors.New("a message of Neighbor Discovery that RFC 4861 has receivers ignore")
)

// parseNDP reads a packet from its IPv6 header on. What is behind the payload is padding of Ethernet. It checks what RFC 4861
// wants checked, in sections 7.1.1 and 7.1.2.
func parseNDP(b []byte) (m ndpMessage, err error) {
	if len(b) < ndpBytes {
		return m, fmt.Errorf("%w: %d of %d bytes", errNDPShort, len(b), ndpBytes)
	}
	end := ip6Bytes + int(binary.BigEndian.Uint16(b[ip6Payload:]))
	m.kind = ndpKind(b[ndpKindAt])
	switch {
	case b[0]>>4 != 6 || b[ip6Next] != unix.IPPROTO_ICMPV6 || m.kind != solicitation && m.kind != advertisement:
		return m, fmt.Errorf("%w: version %d, next header %d, type %d", errNDPKind, b[0]>>4, b[ip6Next], b[ndpKindAt])
	case end < ndpBytes || end > len(b):
		return m, fmt.Errorf("%w: its payload has %d bytes", errNDPShort, end-ip6Bytes)
	}
	b = b[:end]
	m.source, m.destination = netip.AddrFrom16([16]byte(b[ip6Source:])), netip.AddrFrom16([16]byte(b[ip6Target:]))
	m.target, m.flags = netip.AddrFrom16([16]byte(b[ndpSubjectAt:])), b[ndpFlagsAt]
	if m.kind == solicitation {
		m.flags = 0 // reserved
	}
	if m.mac, err = m.option(b[ndpBytes:]); err != nil {
		return m, err
	}
	isProbe := m.kind == solicitation && m.source.IsUnspecified()
	switch {
	case b[ip6HopLimit] != ndpHopLimit:
		return m, fmt.Errorf("%w: hop limit %d", errNDPInvalid, b[ip6HopLimit])
	case checksum6(b) != 0xffff:
		return m, fmt.Errorf("%w: the checksum is wrong", errNDPInvalid)
	case b[ndpCodeAt] != 0:
		return m, fmt.Errorf("%w: code %d", errNDPInvalid, b[ndpCodeAt])
	case m.target.IsMulticast():
		return m, fmt.Errorf("%w: %v is no machine's address", errNDPInvalid, m.target)
	case isProbe && (m.mac != hardwareAddr{} || m.destination != solicitedNode(m.target)):
		return m, fmt.Errorf("%w: a probe for %v that names its sender, or goes to %v", errNDPInvalid, m.target, m.destination)
	case m.flags&ndpSolicited != 0 && m.destination.IsMulticast():
		return m, fmt.Errorf("%w: an answer to everybody", errNDPInvalid)
	}
	return m, nil
}

// option returns the sender's Ethernet address from the options, or zero if none has it.
func (m ndpMessage) option(options []byte) (mac hardwareAddr, err error) {
	wanted := byte(ndpSourceOption)
	if m.kind == advertisement {
		wanted = ndpTargetOption
	}
	for len(options) > 0 {
		if len(options) < 8 || options[1] == 0 || len(options) < 8*int(options[1]) {
			return mac, fmt.Errorf("%w: an option is cut", errNDPInvalid)
		}
		if options[0] == wanted && options[1] == 1 {
			mac = hardwareAddr(options[2:8])
		}
		options = options[8*int(options[1]):]
	}
	return mac, nil
}

// ndpFilter passes solicitations and advertisements that are about one of the addresses, or speak as one, but not in frames of
// those senders.
func ndpFilter(addresses []netip.Addr, muted ...hardwareAddr) (program []bpf.Instruction) {
	const frameSource = 1<<32 - 0x200000 + 6 // SKF_LL_OFF: relative to the Ethernet header
	for _, sender := range muted {
		program = append(program,
			bpf.LoadAbsolute{Off: frameSource, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(sender[:]), SkipFalse: 3},
			bpf.LoadAbsolute{Off: frameSource + 4, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(binary.BigEndian.Uint16(sender[4:])), SkipFalse: 1},
			bpf.RetConstant{Val: 0})
	}
	program = append(program,
		bpf.LoadAbsolute{Off: ip6Next, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: ndpKindAt, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(solicitation), SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(advertisement), SkipTrue: 1},
		bpf.RetConstant{Val: 0})
	for _, addr := range addresses {
		for _, at := range []uint32{ndpSubjectAt, ip6Source} {
			program = append(program, passAddr6(addr, at)...)
		}
	}
	return append(program, bpf.RetConstant{Val: 0})
}

// passAddr6 passes a packet that has an address there.
func passAddr6(addr netip.Addr, at uint32) (program []bpf.Instruction) {
	const words = 4
	a := addr.As16()
	for i := range uint32(words) {
		program = append(program,
			bpf.LoadAbsolute{Off: at + 4*i, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(a[4*i:]), SkipFalse: uint8(2*(words-1-i) + 1)})
	}
	return append(program, bpf.RetConstant{Val: pass})
}
