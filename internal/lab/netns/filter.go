package netns

import (
	"fmt"
	"math"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Port is a port of a switch, by the name of its interface there.
type Port string

// Filter says which frames the switch drops: those that meet all of its conditions. The zero value drops every frame.
//
// A frame is dropped where it is forwarded to a port, and not in the receiver: there, a program with a packet socket, as
// libpcap has it, would see what the rest of the kernel does not. A frame that goes to several ports is looked at once
// for each. Carriers stay as they are.
type Filter struct {
	From, To  []Port  // nil: any port
	Multicast bool    // only multicasts; broadcasts and unicasts pass
	Traffic   Traffic // only this traffic, if it is not the zero value
	Share     float64 // only this share of them, drawn for each; 0: all
}

// Traffic is a kind of IPv4 packets.
type Traffic struct {
	Protocol uint8  // of IP, such as unix.IPPROTO_UDP
	Port     uint16 // the destination port, of UDP and TCP; 0: any
}

// Cut drops all that comes from some ports and all that goes to them.
func Cut(ports ...Port) []Filter { return []Filter{{From: some(ports)}, {To: some(ports)}} }

// Apart drops what goes from one side to the other.
func Apart(one, other []Port) []Filter {
	return []Filter{{From: some(one), To: some(other)}, {From: some(other), To: some(one)}}
}

// Ports are those of some hosts.
func Ports(hosts ...*Host) []Port {
	ports := some(nil)
	for _, h := range hosts {
		ports = append(ports, h.Port())
	}
	return ports
}

// some are ports of which there may be none, which does not mean all.
func some(ports []Port) []Port { return append([]Port{}, ports...) }

// hookForward is NF_BR_FORWARD of linux/netfilter_bridge.h. Those frames do not pass it that this machine sends or gets
// at the switch itself (see Segment).
const hookForward = nftables.ChainHook(2)

// parts is the granularity of a share: the kernel draws a number below it.
const parts = 1_000_000

// Offsets within headers. Options of IP move the ports, and nobody here sends any.
const (
	offsetProtocol = 9 // RFC 791
	offsetDestPort = 2 // RFC 768, RFC 9293
)

// Filter has the switch drop what any of the filters describes, instead of what it has dropped so far. Without a filter
// it drops nothing. All changes at once, and the call takes some tenths of a millisecond. A second path with a switch of its own is let alone.
func (l *LAN) Filter(filters ...Filter) error {
	return l.inSwitch("filter", func(f *fabric) error { return f.filter(l.onFirstPath(filters)) })
}

// Filter does so for a segment, also for the programs that have opened it.
func (s *Segment) Filter(filters ...Filter) error {
	if err := s.fabric.filter(filters); err != nil {
		return fmt.Errorf("netns: filter at the switch: %w", err)
	}
	return nil
}

func (f *fabric) filter(filters []Filter) error {
	for _, one := range filters {
		if err := one.check(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nft == nil {
		nft, err := nftables.New(nftables.WithNetNSFd(int(f.ns)), nftables.AsLasting())
		if err != nil {
			return err
		}
		f.nft = nft
	}
	hook := hookForward
	table := f.nft.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: "filter"})
	chain := f.nft.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter, Hooknum: &hook, Priority: nftables.ChainPriorityFilter,
	})
	f.nft.FlushChain(chain) // All of it is one transaction.
	for _, one := range filters {
		expressions, err := f.expressions(table, one)
		if err != nil {
			return err
		}
		f.nft.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: expressions})
	}
	if err := f.nft.Flush(); err != nil {
		return fmt.Errorf("set %d rules (does the kernel have nf_tables for bridges, and nft_numgen?): %w", len(filters), err)
	}
	return nil
}

// check refuses what no frame can meet.
func (f Filter) check() error {
	if !(f.Share >= 0 && f.Share <= 1) {
		return fmt.Errorf("a share of %v: must be 0 to 1", f.Share)
	}
	if t := f.Traffic; t.Port != 0 && t.Protocol != unix.IPPROTO_UDP && t.Protocol != unix.IPPROTO_TCP {
		return fmt.Errorf("protocol %d has no ports", t.Protocol)
	}
	return nil
}

// expressions are the rule of a filter: each goes on to the next one if the frame is as it says.
func (f *fabric) expressions(table *nftables.Table, filter Filter) (list []expr.Any, err error) {
	const register = 1
	load := func(what expr.Any, compare ...expr.Any) { list = append(append(list, what), compare...) }
	equal := func(value []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: value} }
	for _, side := range []struct {
		key   expr.MetaKey
		ports []Port
	}{{expr.MetaKeyIIFNAME, filter.From}, {expr.MetaKeyOIFNAME, filter.To}} {
		if side.ports == nil {
			continue
		}
		f.sets++
		ports := &nftables.Set{ID: f.sets, Name: "__set%d", Table: table, Anonymous: true, Constant: true, KeyType: nftables.TypeIFName}
		var names []nftables.SetElement
		for _, p := range side.ports {
			names = append(names, nftables.SetElement{Key: interfaceName(string(p))})
		}
		if err := f.nft.AddSet(ports, names); err != nil {
			return nil, err
		}
		load(&expr.Meta{Key: side.key, Register: register}, &expr.Lookup{SourceRegister: register, SetName: ports.Name, SetID: ports.ID})
	}
	if filter.Multicast {
		load(&expr.Meta{Key: expr.MetaKeyPKTTYPE, Register: register}, equal([]byte{unix.PACKET_MULTICAST}))
	}
	if filter.Traffic.Protocol != 0 {
		load(&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: register}, equal(binaryutil.BigEndian.PutUint16(unix.ETH_P_IP)))
		load(&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offsetProtocol, Len: 1},
			equal([]byte{filter.Traffic.Protocol}))
	}
	if filter.Traffic.Port != 0 {
		load(&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: offsetDestPort, Len: 2},
			equal(binaryutil.BigEndian.PutUint16(filter.Traffic.Port)))
	}
	if filter.Share != 0 {
		// Numbers are compared as bytes, so the drawn one is put into the order of the network first.
		load(&expr.Numgen{Register: register, Modulus: parts, Type: unix.NFT_NG_RANDOM},
			&expr.Byteorder{SourceRegister: register, DestRegister: register, Op: expr.ByteorderHton, Len: 4, Size: 4},
			&expr.Cmp{Op: expr.CmpOpLt, Register: register, Data: binaryutil.BigEndian.PutUint32(uint32(math.Round(filter.Share * parts)))})
	}
	return append(list, &expr.Verdict{Kind: expr.VerdictDrop}), nil
}

// interfaceName is a name as the kernel compares it.
func interfaceName(name string) []byte {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return padded
}

// Firewall is the firewall of a host, as ufw and others set it up: nothing comes in but what answers, what the host sends to itself,
// ICMP and TCP.
type Firewall struct {
	conn  *nftables.Conn
	table *nftables.Table
}

// NewFirewall switches it on in the network namespace of the calling thread.
func NewFirewall() (*Firewall, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("netns: switch a firewall on: %w", err)
	}
	f := &Firewall{conn: conn, table: conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "firewall"})}
	policy := nftables.ChainPolicyDrop
	input := conn.AddChain(&nftables.Chain{
		Name: "input", Table: f.table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput,
		Priority: nftables.ChainPriorityFilter, Policy: &policy,
	})
	const firstRegister = 1
	accept := func(match ...expr.Any) {
		conn.AddRule(&nftables.Rule{Table: f.table, Chain: input, Exprs: append(match, &expr.Verdict{Kind: expr.VerdictAccept})})
	}
	equal := func(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: data} }
	accept(&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: firstRegister}, equal(interfaceName("lo")))
	accept(
		&expr.Ct{Key: expr.CtKeySTATE, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: make([]byte, 4)},
	)
	for _, protocol := range []byte{unix.IPPROTO_ICMP, unix.IPPROTO_TCP} {
		accept(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: firstRegister}, equal([]byte{protocol}))
	}
	if err := conn.Flush(); err != nil {
		_ = conn.CloseLasting()
		return nil, fmt.Errorf("netns: switch a firewall on (does the kernel have nf_tables and nf_conntrack?): %w", err)
	}
	return f, nil
}

// Close switches it off.
func (f *Firewall) Close() error {
	f.conn.DelTable(f.table)
	err := f.conn.Flush()
	_ = f.conn.CloseLasting()
	if err != nil {
		return fmt.Errorf("netns: switch a firewall off: %w", err)
	}
	return nil
}
