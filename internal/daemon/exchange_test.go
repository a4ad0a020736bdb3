package daemon

import (
	"net/netip"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestExchange: what was sent to this board alone gets to the group whose tag it has, whichever sockets it came to. What was sent to
// all, and what is of no group of this address, stays where it came.
func TestExchange(t *testing.T) {
	here, there := ownAddress(1), netip.MustParseAddr("192.0.2.1")
	var e exchange
	codecs := map[string]*wire.Codec{}
	groups := map[string]openGroup{}
	add := func(name string, local netip.Addr) {
		var err error
		codecs[name], err = wire.NewCodec(name)
		assert.NoError(t, err)
		if name == "stranger" {
			return
		}
		groups[name] = openGroup{wire.TagOf(name), newInbox(4, codecs[name]), local, &fakeTransport{}}
		e.add(groups[name])
	}
	add("dns1", here)
	add("dns2", here)
	add("elsewhere", there)
	add("stranger", here)
	for _, test := range []struct {
		of   string // the group of the packet
		path netio.Path
		want string // where it gets to, if it comes to the sockets of dns1
	}{
		{"dns1", netio.PathUnicast, "dns1"},
		{"dns2", netio.PathUnicast, "dns2"},
		{"dns2", netio.PathMulticast, "dns1"},
		{"elsewhere", netio.PathUnicast, "dns1"},
		{"stranger", netio.PathUnicast, "dns1"},
		{"", netio.PathUnicast, "dns1"}, // a packet of one byte
	} {
		packet := []byte{1}
		if test.of != "" {
			m := wire.Message{Header: wire.Header{Type: wire.TypeResign, Algorithm: wire.AlgorithmHeir, Sender: 2, Incarnation: 1, Sequence: 1}}
			var err error
			packet, err = codecs[test.of].Append(nil, &m)
			assert.NoError(t, err)
		}
		e.deliver(groups["dns1"], netio.Datagram{Data: packet, From: netip.AddrPortFrom(ownAddress(2), 7000), Path: test.path, At: 1, Known: true})
		for name, g := range groups {
			want := 0
			if name == test.want {
				want = 1
			}
			got := len(g.inbox.messages)
			for i := range g.inbox.dropped {
				got += int(g.inbox.dropped[i].Swap(0))
			}
			if got != want {
				t.Errorf("a packet of %q by %v: %s got %d, want %d", test.of, test.path, name, got, want)
			}
			g.inbox.clear()
		}
	}
	assert.Is(t, 2, len(e.at(here)), "the transports of this address")
	e.remove(groups["dns2"].inbox)
	assert.Is(t, 1, len(e.at(here)), "the transports after one was closed")
}
