package examine

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sort"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
	"topdog/wire"
)

// voice is what comes from one address.
type voice struct {
	from      netip.Addr
	name      string
	leads     bool // it has sent heartbeats
	algorithm wire.Algorithm
	settings  wire.Settings
	accepted  int
	multicast int // of these, by multicast
	drops     [wire.DropReasons]int
	mac       net.HardwareAddr
}

// foreign says why packets of this group that come from there are dropped, and what to do; "" if none are.
func (v *voice) foreign() (text, remedy string) {
	const copyKey = "copy the key of one board to the others: sudo topdog init --export | ssh USER@BOARD sudo topdog init --import --force"
	for _, f := range []struct {
		reason       wire.DropReason
		text, remedy string
	}{
		{wire.BadTag, "has another key", copyKey},
		{wire.Unauthenticated, "has no key", copyKey},
		{wire.NotExpectingAuth, "has a key, and this board has none", copyKey},
		{wire.OtherVersion, "has another version of the protocol", "install the same version of topdog on all boards"},
	} {
		if v.drops[f.reason] > 0 {
			return f.text, f.remedy
		}
	}
	return "", ""
}

func (v *voice) String() string {
	if v.name == "" {
		return v.from.String()
	}
	return fmt.Sprintf("%s (%v)", v.name, v.from)
}

// ear collects voices.
type ear struct {
	mu     sync.Mutex
	codec  *wire.Codec
	voices map[netip.Addr]*voice
}

// maxVoices bounds what is remembered: anybody can send with any address.
const maxVoices = wire.MaxBoards

// hear is told of each datagram.
func (e *ear) hear(d netio.Datagram) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.voices[d.From.Addr()]
	if v == nil {
		if len(e.voices) == maxVoices {
			return
		}
		v = &voice{from: d.From.Addr()}
		e.voices[v.from] = v
	}
	var m wire.Message
	if drop := e.codec.Decode(&m, d.Data); drop.Dropped() {
		v.drops[drop.Reason]++
		return
	}
	v.accepted++
	v.algorithm = m.Algorithm
	if d.Path == netio.PathMulticast {
		v.multicast++
	}
	switch m.Type {
	case wire.TypeHello:
		v.name, v.settings = m.Hello.Name, m.Hello.Settings
	case wire.TypeHeartbeat:
		v.leads = true
	}
}

// all returns the voices in order.
func (e *ear) all() (all []*voice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.voices {
		all = append(all, v)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].from.Less(all[j].from) })
	return all
}

// group opens what a daemon opens, listens to the group, and asks who has the address. keyed says that the key can be used.
func (b *Board) group(ctx context.Context, r *console.Report, n daemon.Network, keyed bool) error {
	add := to(r, console.SectionGroup)
	if b.StartHolder == nil {
		add(console.TopicOtherBoard, console.StateUnknown, "only root may listen to the group, and ask who has the address", "sudo topdog check")
		return nil
	}
	holder, err := b.StartHolder()
	if err != nil {
		add(console.TopicSockets, console.StateWrong, err.Error(), "")
		return nil
	}
	defer holder.Close()
	platform := daemon.Real(b.Config, daemon.RealOptions{Holder: holder})
	transport, err := platform.OpenTransport(n.Interface, n.Local.Addr())
	if err != nil {
		add(console.TopicSockets, console.StateWrong, err.Error(), "")
		return nil
	}
	codec, err := wire.NewCodec(b.Config.Group, b.Config.Keys.Secrets()...)
	if err != nil {
		transport.Close()
		return err
	}
	e := &ear{codec: codec, voices: map[netip.Addr]*voice{}}
	before := transport.Arrivals()
	var serving sync.WaitGroup
	serving.Go(func() { _ = transport.Serve(e.hear) }) // its error is that it was closed
	heard := time.NewTimer(listenFor)
	select {
	case <-heard.C:
	case <-ctx.Done():
	}
	arrivals := transport.Arrivals()
	transport.Close()
	serving.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	voices := e.all()
	if seen := arrivals.Seen - before.Seen; arrivals.Counted && arrivals.Heard == before.Heard && seen >= daemon.FirewallLoss {
		add(console.TopicFirewall, console.StateWrong, daemon.Blocked(n.Interface, b.Config.Multicast.Port()), "")
	} else {
		b.boards(add, n, voices, keyed)
	}
	return b.owners(ctx, add, n, voices, keyed)
}

// boards says who was heard.
func (b *Board) boards(add adder, n daemon.Network, voices []*voice, keyed bool) {
	heard := 0
	for _, v := range voices {
		text := v.String() + " is heard"
		if v.leads {
			text = v.String() + " leads"
		}
		switch ours := daemon.SettingsOf(b.Config); {
		case v.accepted > 0 && v.algorithm != b.Config.Algorithm:
			heard++
			add(console.TopicOtherBoard, console.StateWrong, fmt.Sprintf("%v runs the algorithm %v, and this board %v, so this board would stay out", v, v.algorithm, b.Config.Algorithm),
				"set the same algorithm on all boards of the group")
		case v.settings.Told() && !v.settings.Equal(ours):
			heard++
			add(console.TopicOtherBoard, console.StateLook, fmt.Sprintf("%v has heartbeats every %v and the addresses %v, and this board every %v and %v", v,
				v.settings.Heartbeat, v.settings.Addresses, ours.Heartbeat, ours.Addresses), "write the same address and heartbeat into the config of all boards")
		case v.accepted > 1 && v.multicast == 0:
			heard++
			add(console.TopicOtherBoard, console.StateLook, v.String()+" is heard, and its multicast does not arrive", "look for IGMP snooping without a querier at the switch or the access point")
		case v.accepted > 0:
			heard++
			add(console.TopicOtherBoard, console.StateRight, text, "")
		case keyed:
			if text, remedy := v.foreign(); text != "" {
				add(console.TopicOtherBoard, console.StateLook, fmt.Sprintf("%v %s, so the two do not hear each other", v, text), remedy)
			}
		}
	}
	switch {
	case heard == 0 && !keyed:
		add(console.TopicOtherBoard, console.StateUnknown, "without the key nobody is understood", "")
	case heard == 0:
		add(console.TopicOtherBoard, console.StateRight, fmt.Sprintf("nobody of the group %q speaks on %s at the moment: this board would be the first", b.Config.Group, n.Interface), "")
	}
}

// Who has an address is asked as RFC 5227 has it, but faster: a person waits, and the daemon asks again before it takes the address.
const probeSpacing = 200 * time.Millisecond

// owners asks who has the floating addresses. A board of the group may.
func (b *Board) owners(ctx context.Context, add adder, n daemon.Network, voices []*voice, keyed bool) error {
	a, err := netio.OpenAnnouncer(n.Index, n.Local.Addr())
	if err != nil {
		add(console.TopicAddress, console.StateUnknown, err.Error(), "")
		return nil
	}
	defer a.Close()
	for _, v := range voices {
		v.mac, _, _ = a.Probe(ctx, v.from, 1, probeSpacing) // whoever does not answer is nobody's owner
	}
	for _, f := range b.Config.Addresses {
		mac, found, err := a.Probe(ctx, f.IP, netio.ProbeCount, probeSpacing)
		by := (*voice)(nil)
		for _, v := range voices {
			if found && bytes.Equal(v.mac, mac) {
				by = v
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			add(console.TopicAddress, console.StateUnknown, err.Error(), "")
		case !found:
			add(console.TopicAddress, console.StateRight, fmt.Sprintf("nobody has %v at the moment", f.IP), "")
		case by != nil && by.accepted > 0 && by.from != f.IP:
			add(console.TopicAddress, console.StateRight, fmt.Sprintf("%v has %v", by, f.IP), "")
		default:
			b.taken(add, f.IP, mac, by, keyed)
		}
	}
	return nil
}

// taken tells of a machine that has a floating address, and leads none of this board's group. by is what it says, if anything.
func (b *Board) taken(add adder, address netip.Addr, mac net.HardwareAddr, by *voice, keyed bool) {
	who, remedy := fmt.Sprintf("the machine %v", mac), "choose another address, on all boards, or take it from that machine"
	if by != nil && by.from == address {
		who = fmt.Sprintf("the board %v, as its own address,", by)
	} else if by != nil {
		if text, do := by.foreign(); text != "" {
			who, remedy = fmt.Sprintf("%v, which %s,", by, text), do
		}
	}
	switch {
	case !keyed:
		add(console.TopicAddress, console.StateUnknown, fmt.Sprintf("%s has %v: without the key nobody can tell whether it may", who, address), "")
	case b.Config.TakeInUse:
		add(console.TopicAddress, console.StateLook, fmt.Sprintf("%s has %v, which this board would take from it, as take_in_use says", who, address), remedy)
	default:
		add(console.TopicAddress, console.StateWrong, fmt.Sprintf("%s has %v, and topdog takes no address that another machine has", who, address), remedy)
	}
}

// daemonFound says what the daemon of this board knows.
func (b *Board) daemonFound(add adder) {
	s := b.Daemon
	switch {
	case s.Role == console.RoleLeader && s.Holding:
		add(console.TopicDaemon, console.StateRight, "runs and leads", "")
	case s.Role == console.RoleFollower && s.Leader != "":
		add(console.TopicDaemon, console.StateRight, "runs and follows "+s.LeaderName, "")
	case s.Role == console.RoleFollower:
		add(console.TopicDaemon, console.StateLook, "runs, and there is no leader", "")
	default:
		add(console.TopicDaemon, console.StateWrong, fmt.Sprintf("runs, and is %s (%s), so it takes no part", s.Role, s.ReasonText), "")
	}
	if s.Version != b.Version {
		add(console.TopicDaemon, console.StateLook, fmt.Sprintf("it is of another version (%s) than this program (%s)", s.Version, b.Version), "sudo systemctl restart topdog")
	}
	about := map[string]bool{}
	for _, p := range s.Problems {
		about[p.Board] = true
		add(console.TopicProblem, console.StateLook, p.Text, "")
	}
	for i := range s.Boards {
		if o := &s.Boards[i]; !o.Self && !o.Stale && !o.Gone && !about[o.ID] {
			add(console.TopicOtherBoard, console.StateRight, fmt.Sprintf("%s (%s) is heard by multicast, and hears this board", o.Name, o.Address), "")
		}
	}
}
