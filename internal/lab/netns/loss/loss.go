// Package loss makes the hosts of a lab lose packets. With [Set] they do as with a radio link or
// a bad cable: each receiver drops a share of one kind of packets, by chance and
// independently of the others. With a [Dropper] they lose all frames of one kind: a host goes
// deaf or mute, or multicast dies.
//
// It is done by nftables in the switch, where a packet is forwarded to the
// receiver's port (family bridge), and not in the receiver: there, a program with a
// packet socket, as libpcap has it, would see what the rest of the kernel does not.
// Everything goes through netlink. No tool is needed.
package loss

import (
	"fmt"
	"math"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// Traffic is a kind of IPv4 packets.
type Traffic struct {
	Protocol uint8  // of IP, such as unix.IPPROTO_UDP
	Port     uint16 // the destination port, for UDP and TCP; 0 means any
}

// hookForward is NF_BR_FORWARD of linux/netfilter_bridge.h. A packet that goes to
// several ports passes it once for each.
const hookForward = nftables.ChainHook(2)

// parts is the granularity of a share: the kernel draws a number below it.
const parts = 1_000_000

// Offsets within headers. Options of IP move the ports, and nobody here sends any.
const (
	offsetProtocol = 9 // RFC 791
	offsetDestPort = 2 // RFC 768, RFC 9293
)

// Set makes a host lose the given share (0 to 1) of the traffic that it
// receives. It replaces what was set before.
func Set(h *netns.Host, t Traffic, share float64) error {
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("loss: %s: a share of %v: must be 0 to 1", h.Name, share)
	}
	if t.Port != 0 && t.Protocol != unix.IPPROTO_UDP && t.Protocol != unix.IPPROTO_TCP {
		return fmt.Errorf("loss: %s: protocol %d has no ports", h.Name, t.Protocol)
	}
	namespace, port := h.Port()
	table := &nftables.Table{Family: nftables.TableFamilyBridge, Name: "loss-" + port}
	c, err := nftables.New(nftables.WithNetNSFd(int(namespace)))
	if err == nil {
		// All of it is one transaction. To delete what isn't there is an error, so make
		// sure that it is.
		c.AddTable(table)
		c.DelTable(table)
		c.AddTable(table)
		hook := hookForward
		chain := c.AddChain(&nftables.Chain{
			Name:     "forward",
			Table:    table,
			Type:     nftables.ChainTypeFilter,
			Hooknum:  &hook,
			Priority: nftables.ChainPriorityFilter,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule(port, t, share)})
		err = c.Flush()
	}
	if err != nil {
		return fmt.Errorf("loss: %s: lose %g %% of protocol %d, port %d at %s of the switch (does the kernel have nf_tables for bridges, and nft_numgen?): %w",
			h.Name, 100*share, t.Protocol, t.Port, port, err)
	}
	return nil
}

// rule drops a share of the traffic that is forwarded to a port.
func rule(port string, t Traffic, share float64) []expr.Any {
	equal := func(value []byte) *expr.Cmp { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value} }
	list := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		equal(portKey(port)),
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		equal(binaryutil.BigEndian.PutUint16(unix.ETH_P_IP)),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offsetProtocol, Len: 1},
		equal([]byte{t.Protocol}),
	}
	if t.Port != 0 {
		list = append(list,
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offsetDestPort, Len: 2},
			equal(binaryutil.BigEndian.PutUint16(t.Port)))
	}
	return append(list,
		&expr.Numgen{Register: 1, Modulus: parts, Type: unix.NFT_NG_RANDOM},
		// Numbers are compared as bytes, so the drawn one is put into the order
		// of the network first.
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: binaryutil.BigEndian.PutUint32(uint32(math.Round(share * parts)))},
		&expr.Verdict{Kind: expr.VerdictDrop},
	)
}
