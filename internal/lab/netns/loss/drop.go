package loss

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// Frames is a kind of frames of a host. The link of a host that loses them stays up.
type Frames string

const (
	ToHost          Frames = "to-host"           // nothing comes in: the host is deaf
	FromHost        Frames = "from-host"         // nothing goes out: the host is mute
	MulticastToHost Frames = "multicast-to-host" // no multicast comes in; broadcast and unicast do
)

// Dropper lets the switch of a LAN drop frames of its hosts, by what kind they are. It takes a
// tenth of a millisecond to begin and to end, since the rules are there from the start and ask
// sets of ports; Set, which makes a table, takes ten. It is for one goroutine at a time.
type Dropper struct {
	conn    *nftables.Conn
	sets    map[Frames]*nftables.Set
	reasons map[dropped]int // how many Drops have not ended yet
}

// dropped is what a Drop is about.
type dropped struct {
	frames Frames
	port   string
}

// NewDropper prepares the switch to which a host is connected. There is one at most in a LAN.
// It drops nothing yet.
func NewDropper(h *netns.Host) (*Dropper, error) {
	namespace, _ := h.Port()
	d := &Dropper{sets: make(map[Frames]*nftables.Set), reasons: make(map[dropped]int)}
	var err error
	if d.conn, err = nftables.New(nftables.WithNetNSFd(int(namespace)), nftables.AsLasting()); err == nil {
		if err = d.prepare(); err == nil {
			err = d.conn.Flush()
		}
		if err != nil {
			d.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("loss: prepare the switch to drop frames (does the kernel have nf_tables for bridges?): %w", err)
	}
	return d, nil
}

// prepare makes the table: one rule for each kind of frames.
func (d *Dropper) prepare() error {
	table := d.conn.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: "drop"})
	hook := hookForward
	chain := d.conn.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter, Hooknum: &hook, Priority: nftables.ChainPriorityFilter,
	})
	for _, kind := range []struct {
		Frames
		port expr.MetaKey
		more []expr.Any
	}{
		{ToHost, expr.MetaKeyOIFNAME, nil},
		{FromHost, expr.MetaKeyIIFNAME, nil},
		{MulticastToHost, expr.MetaKeyOIFNAME, []expr.Any{
			&expr.Meta{Key: expr.MetaKeyPKTTYPE, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.PACKET_MULTICAST}},
		}},
	} {
		ports := &nftables.Set{Table: table, Name: string(kind.Frames), KeyType: nftables.TypeIFName}
		if err := d.conn.AddSet(ports, nil); err != nil {
			return err
		}
		d.sets[kind.Frames] = ports
		exprs := append([]expr.Any{
			&expr.Meta{Key: kind.port, Register: 1},
			&expr.Lookup{SourceRegister: 1, SetName: ports.Name, SetID: ports.ID},
		}, kind.more...)
		d.conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(exprs, &expr.Verdict{Kind: expr.VerdictDrop})})
	}
	return nil
}

// Close gives the connection to the switch back. What is dropped then is dropped as long as the LAN is there.
func (d *Dropper) Close() error { return d.conn.CloseLasting() }

// Drop lets hosts lose frames from now on, all at the same time. What they lose already they lose until
// both Drops have ended.
func (d *Dropper) Drop(kind Frames, hosts ...*netns.Host) error {
	var ports []nftables.SetElement
	for _, h := range hosts {
		_, port := h.Port()
		if d.reasons[dropped{kind, port}]++; d.reasons[dropped{kind, port}] == 1 {
			ports = append(ports, nftables.SetElement{Key: portKey(port)})
		}
	}
	return d.change("drop", d.conn.SetAddElements, kind, ports)
}

// Pass ends a Drop of the same hosts.
func (d *Dropper) Pass(kind Frames, hosts ...*netns.Host) error {
	var ports []nftables.SetElement
	for _, h := range hosts {
		_, port := h.Port()
		if d.reasons[dropped{kind, port}] == 0 {
			return fmt.Errorf("loss: pass the frames %s of %s, which are not dropped", kind, h.Name)
		}
		if d.reasons[dropped{kind, port}]--; d.reasons[dropped{kind, port}] == 0 {
			ports = append(ports, nftables.SetElement{Key: portKey(port)})
		}
	}
	return d.change("pass", d.conn.SetDeleteElements, kind, ports)
}

func (d *Dropper) change(what string, do func(*nftables.Set, []nftables.SetElement) error, kind Frames, ports []nftables.SetElement) error {
	if len(ports) == 0 {
		return nil
	}
	err := do(d.sets[kind], ports)
	if err == nil {
		err = d.conn.Flush()
	}
	if err != nil {
		return fmt.Errorf("loss: %s the frames %s of %d hosts at the switch: %w", what, kind, len(ports), err)
	}
	return nil
}

// portKey is the name of a port as the kernel compares it.
func portKey(port string) []byte {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, port)
	return name
}
