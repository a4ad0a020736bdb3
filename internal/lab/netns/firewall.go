package netns

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

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
