package wire

import (
	"encoding/binary"
	"fmt"
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
	// version, a HELLO with MaxIPv6 addresses, has 1470 bytes.
	MaxPacket = 1500 - 20 - 8

	// MinPacket is the length of the shortest packet: nothing but a header.
	MinPacket = headerSize
)

// Codec turns messages of one group into packets and back. One goroutine may use Append while
// another one uses Decode, but neither method may be used by two goroutines at the same time.
type Codec struct {
	group  GroupTag
	keys   []*authenticator // that are accepted; none in a group without a key
	signer *authenticator   // of the first key; not shared with keys, which Decode uses
}

// maxKeys is how many keys a board accepts at most: the mark of a packet is one bit, so it tells two keys apart.
const maxKeys = 2

// NewCodec returns a codec for the group. The first key signs, and a second one is accepted as
// well. Each key must have KeySize bytes; a nil key is no key. Without a key, packets are not
// authenticated.
func NewCodec(group string, keys ...[]byte) (*Codec, error) {
	c := &Codec{group: TagOf(group)}
	for _, key := range keys {
		if key == nil {
			continue
		}
		accepted, err := newAuthenticator(group, key)
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, accepted)
		if c.signer != nil {
			continue
		}
		if c.signer, err = newAuthenticator(group, key); err != nil {
			return nil, err
		}
	}
	switch n := len(c.keys); {
	case n > maxKeys:
		return nil, fmt.Errorf("there are %d keys, a board accepts at most %d", n, maxKeys)
	case n == maxKeys && c.keys[0].fingerprint.Mark() == c.keys[1].fingerprint.Mark():
		return nil, fmt.Errorf("the keys %v and %v have the same mark, so packets would not tell them apart: make another one with topdog key add",
			c.keys[0].fingerprint, c.keys[1].fingerprint)
	}
	return c, nil
}

// authenticated reports whether the group has a key.
func (c *Codec) authenticated() bool { return len(c.keys) > 0 }

// Keys returns the fingerprints of the keys.
func (c *Codec) Keys() (k Keys) {
	for i, a := range c.keys {
		if i == 0 {
			k.Signs = a.fingerprint
		} else {
			k.Also = a.fingerprint
		}
	}
	return k
}

// keyFor returns the key that may have made the tag of a packet. So a bad tag costs one HMAC,
// however many keys there are.
func (c *Codec) keyFor(datagram []byte) *authenticator {
	mark := datagram[offFlags] & flagMark >> markShift
	if len(c.keys) > 1 && c.keys[1].fingerprint.Mark() == mark {
		return c.keys[1]
	}
	return c.keys[0] // even if its mark is another one: programs that cannot change keys always send 0
}

// Append appends m to dst as a packet. It fails with a *fieldError if a field
// does not fit the wire, and then returns dst as it was. It allocates only if dst is too small.
func (c *Codec) Append(dst []byte, m *Message) ([]byte, error) {
	if err := m.Header.check(); err != nil {
		return dst, err
	}
	packet := m.Header.appendTo(dst, c.group, c.signature())
	body := cursor{message: m.Type, packet: packet, at: len(packet)}
	if m.fields(&body); body.err != nil {
		return dst, body.err
	}
	packet = body.packet
	if c.authenticated() {
		packet = append(packet, c.signer.tag(packet[len(dst):])...)
	}
	return packet, nil
}

// signature returns the flags that announce a tag, and the key that makes it.
func (c *Codec) signature() byte {
	if !c.authenticated() {
		return 0
	}
	return flagAuthenticated | c.signer.fingerprint.Mark()<<markShift
}

// Decode reads a packet into m: the header, and the body of its type. The other bodies stay as
// they are. If the packet is dropped, m is of no use, but for the Sender, Leading and Key of a packet
// of OtherVersion.
//
// It allocates only names that differ from those in m, and lists (standings, candidates,
// trusted set, addresses) that are longer than the capacity of the ones in m. The next Decode
// into m overwrites these lists.
func (c *Codec) Decode(m *Message, datagram []byte) Drop {
	packet, key, drop := c.open(datagram)
	if drop.Reason == OtherVersion {
		m.Sender = ID(binary.BigEndian.Uint32(datagram[offSender:]))
		m.Leading = datagram[offFlags]&flagLeading != 0
		m.Key = key
	}
	if drop.Dropped() {
		return drop
	}
	if drop = m.Header.decode(packet); drop.Dropped() {
		return drop
	}
	m.Key = key
	body := cursor{message: m.Type, reading: true, packet: packet, at: headerSize}
	m.fields(&body)
	return body.drop
}

// open makes sure that the packet is for this version, group and key, and cuts
// the tag off. Until the tag is verified, the bytes only decide whether to drop the packet.
func (c *Codec) open(datagram []byte) ([]byte, Fingerprint, Drop) {
	n := len(datagram)
	group, _ := TagIn(datagram)
	switch {
	case n < headerSize:
		return nil, 0, Drop{TooShort, n}
	case n > MaxPacket:
		return nil, 0, Drop{TooLong, MaxPacket}
	case datagram[offVersion]>>versionShift != version && c.ofGroup(datagram):
		key := Fingerprint(0)
		if c.authenticated() {
			key = c.keyFor(datagram).fingerprint
		}
		return nil, key, Drop{OtherVersion, offVersion}
	case datagram[offVersion]>>versionShift != version:
		return nil, 0, Drop{BadVersion, offVersion}
	case group != c.group:
		return nil, 0, Drop{OtherGroup, offGroup}
	}
	authenticated := datagram[offFlags]&flagAuthenticated != 0
	switch {
	case !c.authenticated() && authenticated:
		return nil, 0, Drop{NotExpectingAuth, offFlags}
	case !c.authenticated():
		return datagram, 0, Drop{}
	case !authenticated:
		return nil, 0, Drop{Unauthenticated, offFlags}
	case n < headerSize+tagSize:
		return nil, 0, Drop{TooShort, n}
	}
	packet, tag := datagram[:n-tagSize], datagram[n-tagSize:]
	key := c.keyFor(datagram)
	if !key.verify(packet, tag) {
		return nil, 0, Drop{BadTag, n - tagSize}
	}
	return packet, key.fingerprint, Drop{}
}

// ofGroup reports whether a packet of another version comes from a board of this group. All
// versions have the group tag, the flag of authentication and the tag at the same place.
func (c *Codec) ofGroup(datagram []byte) bool {
	end := len(datagram) - tagSize
	group, _ := TagIn(datagram)
	switch authenticated := datagram[offFlags]&flagAuthenticated != 0; {
	case group != c.group || authenticated != c.authenticated():
		return false
	case !c.authenticated():
		return true
	}
	return end >= headerSize && c.keyFor(datagram).verify(datagram[:end], datagram[end:])
}
