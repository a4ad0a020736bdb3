package examine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	sender    wire.ID
	leads     bool // it has sent heartbeats
	algorithm wire.Algorithm
	settings  wire.Settings
	accepted  int
	multicast int // of these, by multicast
	drops     [wire.DropReasons]int
}

// foreign says why packets of this group that come from there are dropped, and what to do; "" if none are.
func (v *voice) foreign() (text, remedy string) {
	const fetch = "on a board that works: sudo topdog init --export | ssh USER@THIS_BOARD 'sudo topdog init --import --force' (it replaces this board's configuration, too)"
	for _, f := range []struct {
		reason       wire.DropReason
		text, remedy string
	}{
		{wire.BadTag, "has another key", fetch},
		{wire.Unauthenticated, "has no key", "on this board, if it is the one that works: sudo topdog init --export | ssh USER@THAT_BOARD 'sudo topdog init --import --force' (it replaces that board's configuration, too)"},
		{wire.NotExpectingAuth, "has a key, and this board has none", fetch},
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
	v.sender, v.algorithm = m.Sender, m.Algorithm
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
func (b *Board) group(ctx context.Context, add adder, n daemon.Network, keyed bool) error {
	if b.StartHolder == nil {
		add(console.TopicOtherBoard, console.StateUnknown, "only root may listen to the group, and ask who has the address", "sudo topdog check")
		return nil
	}
	voices, arrivals, err := b.listen(ctx, n)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		add(console.TopicSockets, console.StateWrong, err.Error(), "")
		return nil
	case arrivals.Counted && arrivals.Heard == 0 && arrivals.Seen >= daemon.FirewallLoss:
		add(console.TopicFirewall, console.StateWrong, daemon.Blocked(n.Interface, b.Config.Multicast.Port()), "")
	default:
		b.boards(add, n, voices, keyed)
	}
	return b.owners(ctx, add, n, voices, arrivals.FromOwn > 0, keyed)
}

// listen hears the group for a while, by the sockets that a daemon would have.
func (b *Board) listen(ctx context.Context, n daemon.Network) (voices []*voice, arrivals netio.Arrivals, err error) {
	codec, err := wire.NewCodec(b.Config.Group, b.Config.Keys.Secrets()...)
	if err != nil {
		return nil, arrivals, err
	}
	holder, err := b.StartHolder()
	if err != nil {
		return nil, arrivals, err
	}
	defer holder.Close()
	transport, err := daemon.Real(b.Config, daemon.RealOptions{Holder: holder}).OpenTransport(n.Interface, n.Local.Addr())
	if err != nil {
		return nil, arrivals, err
	}
	e := &ear{codec: codec, voices: map[netip.Addr]*voice{}}
	before := transport.Arrivals()
	var serving sync.WaitGroup
	serving.Go(func() { _ = transport.Serve(e.hear) }) // its error is that it was closed
	select {
	case <-time.After(listenFor):
	case <-ctx.Done():
	}
	arrivals = transport.Arrivals()
	arrivals.Seen -= before.Seen
	arrivals.Heard -= before.Heard
	arrivals.FromOwn -= before.FromOwn
	transport.Close()
	serving.Wait()
	return e.all(), arrivals, nil
}

// id is that of this board.
func (b *Board) id(n daemon.Network) wire.ID {
	if b.Config.ID != wire.Nobody {
		return b.Config.ID
	}
	return wire.IDFromAddr(n.Local.Addr())
}

// leader is the board that leads, if one is heard that this board would follow.
func (b *Board) leader(voices []*voice) *voice {
	for _, v := range voices {
		if v.accepted > 0 && v.leads && v.algorithm == b.Config.Algorithm {
			return v
		}
	}
	return nil
}

// boards says who was heard.
func (b *Board) boards(add adder, n daemon.Network, voices []*voice, keyed bool) {
	heard := 0
	ours := daemon.SettingsOf(b.Config)
	for _, v := range voices {
		text, remedy := v.foreign()
		state := console.StateLook
		switch {
		case v.accepted == 0 && (text == "" || !keyed):
			continue
		case v.drops[wire.OtherVersion] > 0 && b.leader(voices) == nil:
			state, text = console.StateWrong, "has another version of the protocol, so this board would stay out"
		case v.accepted == 0:
			text += ", so the two do not hear each other"
		case v.sender == b.id(n) && v.from != n.Local.Addr():
			state, text, remedy = console.StateWrong, fmt.Sprintf("has this board's id %v, and the one that starts later stays out", v.sender), "give one of them another id"
		case v.algorithm != b.Config.Algorithm:
			state, text, remedy = console.StateWrong, fmt.Sprintf("runs the algorithm %v, and this board %v, so this board would stay out", v.algorithm, b.Config.Algorithm),
				"set the same algorithm on all boards of the group"
		case v.settings.Told() && !v.settings.Equal(ours):
			text, remedy = fmt.Sprintf("has heartbeats every %v and the addresses %v, and this board every %v and %v",
				v.settings.Heartbeat, v.settings.Addresses, ours.Heartbeat, ours.Addresses), "write the same address and heartbeat into the config of all boards"
		case v.accepted > 1 && v.multicast == 0:
			text, remedy = "is heard, and its multicast does not arrive", "look for IGMP snooping without a querier at the switch or the access point"
		case v.leads:
			state, text, remedy = console.StateRight, "leads", ""
		default:
			state, text, remedy = console.StateRight, "is heard", ""
		}
		heard++
		add(console.TopicOtherBoard, state, fmt.Sprintf("%v %s", v, text), remedy)
	}
	switch {
	case heard == 0 && !keyed:
		add(console.TopicOtherBoard, console.StateUnknown, "without the key nobody is understood", "")
	case heard == 0:
		add(console.TopicOtherBoard, console.StateRight, fmt.Sprintf("nobody of the group %q speaks on %s at the moment: this board would be the first", b.Config.Group, n.Interface), "")
	}
}

// askSpacing is how far apart the questions are who has an address, and how long the last one may be answered.
const askSpacing = 250 * time.Millisecond

// answers asks by ARP, in this board's own name, who has these addresses. To probe for one would look like a claim to a board that is
// about to take it (RFC 5227, section 2.1.1).
func answers(ctx context.Context, a *netio.Announcer, own netip.Addr, addrs []netip.Addr) (by map[netip.Addr][]string, err error) {
	var mu sync.Mutex
	by = map[netip.Addr][]string{}
	a.Rivals(addrs, func(addr netip.Addr, mac net.HardwareAddr) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(by[addr], mac.String()) {
			by[addr] = append(by[addr], mac.String())
		}
	})
	var questions []netio.ARPQuestion
	for _, addr := range addrs {
		questions = append(questions, netio.ARPQuestion{Addr: addr})
	}
	for range netio.ProbeCount {
		if err := a.Ask(own, questions); err != nil {
			return nil, err
		}
		select {
		case <-time.After(askSpacing):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a.Rivals(nil, nil)
	mu.Lock()
	defer mu.Unlock()
	return by, nil
}

// owners asks who has the floating addresses, and whether another machine has this board's own one. A board of the group may have a
// floating one. speaks says that a board of the group has spoken from this board's address.
func (b *Board) owners(ctx context.Context, add adder, n daemon.Network, voices []*voice, speaks, keyed bool) error {
	a, err := netio.OpenAnnouncer(n.Index, n.Local.Addr())
	if err != nil {
		add(console.TopicAddress, console.StateUnknown, err.Error(), "")
		return nil
	}
	defer a.Close()
	mac, found, err := a.Probe(ctx, n.Local.Addr(), 1, askSpacing)
	if err == nil && found && !n.Owns(mac) {
		text, yields := daemon.JudgeDuplicate(n, mac, speaks)
		state := console.StateLook
		if yields {
			state = console.StateWrong
		}
		add(console.TopicInterface, state, text, "")
	}
	var asked []netip.Addr
	for _, f := range b.Config.Addresses {
		asked = append(asked, f.IP)
	}
	for _, v := range voices {
		if text, _ := v.foreign(); v.accepted > 0 || text != "" {
			asked = append(asked, v.from)
		}
	}
	by, err := answers(ctx, a, n.Local.Addr(), asked)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	leader := b.leader(voices)
	for _, f := range b.Config.Addresses {
		switch {
		case err != nil:
			add(console.TopicAddress, console.StateUnknown, err.Error(), "")
		case leader != nil && len(by[f.IP]) == 0:
			add(console.TopicAddress, console.StateLook, fmt.Sprintf("%v leads, and nobody answers for %v", leader, f.IP), "topdog status there")
		case leader != nil:
			b.answered(add, f.IP, leader, by)
		case len(by[f.IP]) == 0:
			add(console.TopicAddress, console.StateRight, fmt.Sprintf("nobody has %v at the moment", f.IP), "")
		default:
			b.taken(add, f.IP, by, voices, keyed)
		}
	}
	return nil
}

// answered tells of a floating address of a leader for which somebody answers. Its interfaces in one network answer for all of its addresses.
func (b *Board) answered(add adder, address netip.Addr, leader *voice, by map[netip.Addr][]string) {
	for _, mac := range by[address] {
		if !slices.Contains(by[leader.from], mac) {
			add(console.TopicAddress, console.StateLook, fmt.Sprintf("%v leads, and %s answers for %v", leader, mac, address),
				"if that is no interface of that board, another machine has the address")
			return
		}
	}
	add(console.TopicAddress, console.StateRight, fmt.Sprintf("%v leads, and answers for %v", leader, address), "")
}

// taken tells of a machine that has a floating address while nobody leads. Which one it is, shows in the Ethernet address that boards have too.
func (b *Board) taken(add adder, address netip.Addr, by map[netip.Addr][]string, voices []*voice, keyed bool) {
	mac := by[address][0]
	who, remedy := "the machine "+mac, "choose another address, on all boards, or take it from that machine"
	for _, v := range voices {
		text, do := v.foreign()
		switch same := slices.Contains(by[v.from], mac); {
		case same && v.from == address:
			who = fmt.Sprintf("the board %v, as its own address,", v)
		case same && text != "":
			who, remedy = fmt.Sprintf("%v, which %s,", v, text), do
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
	reason := ""
	if s.ReasonText != "" {
		reason = " (" + s.ReasonText + ")"
	}
	switch {
	case s.Role == console.RoleLeader && s.Holding:
		add(console.TopicDaemon, console.StateRight, "runs and leads", "")
	case s.Role == console.RoleLeader:
		add(console.TopicDaemon, console.StateWrong, "runs and leads, and does not have the address", "")
	case s.Role == console.RoleFollower && s.Leader != "":
		add(console.TopicDaemon, console.StateRight, "runs and follows "+s.LeaderName, "")
	case s.Role == console.RoleFollower:
		add(console.TopicDaemon, console.StateLook, "runs, and there is no leader", "")
	case s.Role == console.RoleCandidate:
		add(console.TopicDaemon, console.StateWrong, "runs, and has been asking who leads for a while"+reason, "")
	default:
		add(console.TopicDaemon, console.StateWrong, fmt.Sprintf("runs, and is %s%s, so it takes no part", s.Role, reason), "")
	}
	if s.Version != b.Version {
		add(console.TopicDaemon, console.StateLook, fmt.Sprintf("it is of another version (%s) than this program (%s)", s.Version, b.Version), "sudo systemctl restart topdog")
	}
	about := map[string]bool{}
	for _, p := range s.Problems {
		if p.Kind == console.ProblemInterfaceAmbiguous || p.Kind == console.ProblemAddressElsewhere {
			continue // the network says so above
		}
		about[p.Board] = true
		add(console.TopicProblem, console.StateLook, p.Text, "")
	}
	for i := range s.Boards {
		if o := &s.Boards[i]; !o.Self && !o.Stale && !o.Gone && !about[o.ID] {
			add(console.TopicOtherBoard, console.StateRight, fmt.Sprintf("%s (%s) is heard", o.Name, o.Address), "")
		}
	}
}
