package daemon

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// signed returns a HELLO that is signed with the first key, if there is one.
func signed(t *testing.T, id wire.ID, incarnation wire.Incarnation, keys ...[]byte) []byte {
	t.Helper()
	m := &wire.Message{Header: wire.Header{
		Type: wire.TypeHello, Algorithm: wire.AlgorithmHeir, Sender: id, Incarnation: incarnation, Sequence: 1, Priority: 100,
	}}
	m.Hello.Interval = 1000
	packet, err := testCodec(t, keys...).Append(nil, m)
	assert.NoError(t, err)
	return packet
}

// played has the board receive a packet by multicast from an address of the attacker's choice.
func (b *fakeBoard) played(packet []byte, from netip.AddrPort) {
	var transport *fakeTransport
	b.get(func() { transport = b.transport })
	transport.inbox <- netio.Datagram{Data: packet, From: from, Path: netio.PathMulticast}
}

// TestAnswersTheLinkOnly: a recording says nothing of where it comes from. It is answered only where
// another board of the group could be, and on no other port than theirs.
func TestAnswersTheLinkOnly(t *testing.T) {
	for _, test := range []struct{ name, from, want string }{
		{"a host of the link", "10.0.0.77:9254", "10.0.0.77:9254"},
		{"another port", "10.0.0.77:53", "10.0.0.77:9254"},
		{"a peer in another subnet", "10.9.0.7:9254", "10.9.0.7:9254"},
		{"beyond the gateway", "8.8.8.8:9254", ""},
		{"nobody", "0.0.0.0:9254", ""},
		{"multicast", "224.0.0.254:9254", ""},
		{"broadcast", "255.255.255.255:9254", ""},
		{"broadcast of the subnet", "10.0.0.255:9254", ""},
		{"the subnet itself", "10.0.0.0:9254", ""},
		{"loopback", "127.0.0.1:9254", ""},
		{"this board", "10.0.0.1:9254", ""},
		{"the floating address", "10.0.0.100:9254", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Peers = []netip.Addr{netip.MustParseAddr("10.9.0.7")} })
				pass(2 * time.Second)
				var got string
				one.get(func() {
					one.onSend = func(datagram []byte, to netip.AddrPort) {
						if wire.Type(datagram[0]&0x1f) == wire.TypeChallenge {
							got = to.String()
						}
					}
				})
				one.played(signed(t, 77, 5, bytes.Repeat([]byte{7}, wire.KeySize)), netip.MustParseAddrPort(test.from))
				pass(time.Millisecond)
				one.get(func() {
					assert.Equal(t, test.want, got, "where the CHALLENGE goes")
				})
			})
		})
	}
}
