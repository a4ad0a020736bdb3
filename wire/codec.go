package wire

import (
	"encoding/binary"
	"net/netip"
)

// DefaultGroup is the multicast group and the UDP port. The address is the one that RFC
// 4727 sets aside for experiments in the link-local block. Switches with IGMP snooping
// flood that block instead of pruning it (RFC 4541 section 2.1.2), and no router forwards
// it. The port is ours by choice, not by registration.
var DefaultGroup = netip.AddrPortFrom(netip.AddrFrom4([4]byte{224, 0, 0, 254}), 9254)

const (
	// TTL is the time to live of every packet. A router lowers it, so 255 proves that
	// the sender is on this very link, and a packet that arrives with less must be
	// dropped (GTSM, RFC 5082 section 3; VRRP does the same, RFC 9568 section 5.1.1.3).
	TTL = 255

	// MaxPacket is the length of the longest packet: what an Ethernet frame
	// carries without fragments, 1500 bytes less 20 of IPv4 and 8 of UDP. A
	// fragmented packet is lost about twice as often. The longest message of this
	// version, a REPORT, has 1320 bytes.
	MaxPacket = 1500 - 20 - 8
)

// Codec turns messages of one group into packets and back. It is not safe for
// concurrent use: every goroutine needs its own.
type Codec struct {
	group uint16
	auth  *authenticator // nil in a group without a key
}

// NewCodec returns a codec for the group. A nil key means that packets are not
// authenticated; any other must have KeySize bytes.
func NewCodec(group string, key []byte) (*Codec, error) {
	c := &Codec{group: groupTag(group)}
	if key == nil {
		return c, nil
	}
	var err error
	c.auth, err = newAuthenticator(group, key)
	return c, err
}

// Authenticated reports whether the group has a key.
func (c *Codec) Authenticated() bool { return c.auth != nil }

// Append appends m to dst as a packet. It fails with a *fieldError if a field
// does not fit the wire, and then returns dst as it was. It allocates only if dst is too small.
func (c *Codec) Append(dst []byte, m *Message) ([]byte, error) {
	start := len(dst)
	if err := m.Header.check(); err != nil {
		return dst, err
	}
	packet, err := m.appendBody(m.Header.appendTo(dst, c.group, c.auth != nil))
	if err != nil {
		return dst, err
	}
	if c.auth != nil {
		packet = append(packet, c.auth.tag(packet[start:])...)
	}
	return packet, nil
}

// Decode reads a packet into m: the header and the body of its type; the other
// bodies keep what they held. If the result is a drop, m holds nothing of use, but for
// its Sender and Leading if that is OtherVersion.
//
// It allocates nothing but a name that differs from the one in m, and a list
// (standings, candidates, trusted set) that is longer than the capacity of the
// one in m. The lists are m's: the next Decode into m overwrites them.
func (c *Codec) Decode(m *Message, datagram []byte) Drop {
	packet, drop := c.open(datagram)
	if drop.Reason == OtherVersion {
		m.Sender = ID(binary.BigEndian.Uint32(datagram[offSender:]))
		m.Leading = datagram[offFlags]&flagLeading != 0
	}
	if drop.Dropped() {
		return drop
	}
	if drop = m.Header.decode(packet); drop.Dropped() {
		return drop
	}
	return m.decodeBody(packet[headerSize:])
}

// open makes sure that the packet is for this version, group and key, and cuts
// the tag off. What it looks at before the tag is verified decides only whether to drop.
func (c *Codec) open(datagram []byte) ([]byte, Drop) {
	n := len(datagram)
	switch {
	case n < headerSize:
		return nil, Drop{TooShort, n}
	case n > MaxPacket:
		return nil, Drop{TooLong, MaxPacket}
	case datagram[offVersion]>>versionShift != version && c.ofGroup(datagram):
		return nil, Drop{OtherVersion, offVersion}
	case datagram[offVersion]>>versionShift != version:
		return nil, Drop{BadVersion, offVersion}
	case binary.BigEndian.Uint16(datagram[offGroup:]) != c.group:
		return nil, Drop{OtherGroup, offGroup}
	}
	authenticated := datagram[offFlags]&flagAuthenticated != 0
	switch {
	case c.auth == nil && authenticated:
		return nil, Drop{NotExpectingAuth, offFlags}
	case c.auth == nil:
		return datagram, Drop{}
	case !authenticated:
		return nil, Drop{Unauthenticated, offFlags}
	case n < headerSize+tagSize:
		return nil, Drop{TooShort, n}
	}
	packet, tag := datagram[:n-tagSize], datagram[n-tagSize:]
	if !c.auth.verify(packet, tag) {
		return nil, Drop{BadTag, n - tagSize}
	}
	return packet, Drop{}
}

// ofGroup reports whether a packet of another version comes from a board of this group. All
// versions have the group tag, the flag of authentication and the tag at the same place.
func (c *Codec) ofGroup(datagram []byte) bool {
	end := len(datagram) - tagSize
	switch authenticated := datagram[offFlags]&flagAuthenticated != 0; {
	case binary.BigEndian.Uint16(datagram[offGroup:]) != c.group || authenticated != (c.auth != nil):
		return false
	case c.auth == nil:
		return true
	}
	return end >= headerSize && c.auth.verify(datagram[:end], datagram[end:])
}
