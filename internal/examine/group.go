package examine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
	"topdog/wire"
)

// peer is what was heard from one address, of this group or of another one.
type peer struct {
	from      netip.Addr
	name      string
	id        wire.ID
	leads     bool // it has sent heartbeats
	algorithm wire.Algorithm
	settings  wire.Settings
	program   string // the version of its program
	accepted  int
	multicast int // of these, by multicast
	drops     [wire.DropReasons]int
}

// foreign says why packets of this group that come from there are dropped, and what to do; "" if none are.
func (p *peer) foreign() (text, remedy string) {
	const fetch = "on a board that works: sudo topdog init --export | ssh USER@THIS_BOARD 'sudo topdog init --import --force' " +
		"(it replaces this board's configuration, too)"
	const give = "on this board, if it is the one that works: sudo topdog init --export | ssh USER@THAT_BOARD 'sudo topdog init --import --force' " +
		"(it replaces that board's configuration, too)"
	for _, f := range []struct {
		reason       wire.DropReason
		text, remedy string
	}{
		{wire.BadTag, "has another key", fetch},
		{wire.Unauthenticated, "has no key", give},
		{wire.NotExpectingAuth, "has a key, and this board has none", fetch},
		{wire.OtherVersion, "has another version of the protocol", "install the same version of topdog on all boards"},
	} {
		if p.drops[f.reason] > 0 {
			return f.text, f.remedy
		}
	}
	return "", ""
}

func (p *peer) String() string {
	if p.name == "" {
		return p.from.String()
	}
	return fmt.Sprintf("%s (%v)", p.name, p.from)
}

// byAddress has the peers that were heard.
type byAddress map[netip.Addr]*peer

// hear takes in a datagram. It bounds the peers: anybody can send with any address.
func (all byAddress) hear(codec *wire.Codec, d netio.Datagram) {
	p := all[d.From.Addr()]
	if p == nil {
		if len(all) == wire.MaxBoards {
			return
		}
		p = &peer{from: d.From.Addr()}
		all[p.from] = p
	}
	var m wire.Message
	if drop := codec.Decode(&m, d.Data); drop.Dropped() {
		p.drops[drop.Reason]++
		return
	}
	p.accepted++
	p.id, p.algorithm = m.Sender, m.Algorithm
	if d.Path == netio.PathMulticast {
		p.multicast++
	}
	switch m.Type {
	case wire.TypeHello:
		p.name, p.settings, p.program = m.Hello.Name, m.Hello.Settings, m.Hello.Program
	case wire.TypeHeartbeat:
		p.leads = true
	}
}

// listenFor is how long a board listens to its group: a leader speaks after each heartbeat interval, and every board says
// HELLO once a second, one of which may get lost.
const listenFor = 2500 * time.Millisecond

// group opens what a daemon opens, listens to the group, and asks who has the address. keyed says that the key can be used.
func (b *Board) group(ctx context.Context, found section, n daemon.Network, keyed bool) error {
	if b.StartHolder == nil {
		found.unknown(console.TopicOtherBoard, asRoot, "only root may listen to the group, and ask who has the address")
		return nil
	}
	peers, arrivals, err := b.listen(ctx, n)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		found.wrong(console.TopicSockets, "", "%v", err)
		return nil
	case arrivals.Counted && arrivals.Heard == 0 && arrivals.Seen >= daemon.FirewallLoss:
		found.name = b.aboutPort()
		found.wrong(console.TopicFirewall, "", "%s", daemon.Blocked(n.Interface, b.Config.Multicast.Port()))
	default:
		b.boards(found, n, peers, keyed)
	}
	return b.owners(ctx, found, n, peers, arrivals.FromOwn > 0, keyed)
}

// aboutPort is the section of what concerns the port, which is that of all groups.
func (b *Board) aboutPort() string {
	if b.Config.Several {
		return console.SectionNetwork
	}
	return console.SectionGroup
}

// listen hears the group for a while, through the sockets that a daemon would have.
func (b *Board) listen(ctx context.Context, n daemon.Network) (found []*peer, arrivals netio.Arrivals, err error) {
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
	heard := byAddress{}
	before := transport.Arrivals()
	var mu sync.Mutex // each socket is read by a goroutine
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = transport.Serve(func(d netio.Datagram) { // its error is that it was closed
			mu.Lock()
			defer mu.Unlock()
			heard.hear(codec, d)
		})
	})
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
	for _, p := range heard {
		found = append(found, p)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].from.Less(found[j].from) })
	return found, arrivals, nil
}

// id is that of this board.
func (b *Board) id(n daemon.Network) wire.ID {
	if b.Config.ID != wire.Nobody {
		return b.Config.ID
	}
	return wire.IDFromAddr(n.Local.Addr())
}

// leader is a board that leads and that this board would follow; nil if none is heard. A board whose own address is a floating
// address of this one is no member.
func (b *Board) leader(peers []*peer) *peer {
	for _, p := range peers {
		if p.accepted > 0 && p.leads && p.algorithm == b.Config.Algorithm && !slices.Contains(b.floating(), p.from) {
			return p
		}
	}
	return nil
}

// differs reports whether another board has another version of the program than this one.
func (b *Board) differs(program string) bool {
	return program != "" && program != daemon.ProgramName(b.Version)
}

// versions says that the versions differ, and what to do.
func (b *Board) versions(program string) (text, remedy string) {
	return fmt.Sprintf("runs topdog %s, and this board has %s", program, b.Version), "upgrade the board that has the older one"
}

// boards reports which boards were heard.
func (b *Board) boards(found section, n daemon.Network, peers []*peer, keyed bool) {
	heard := 0
	for _, p := range peers {
		if dropped, _ := p.foreign(); p.accepted == 0 && (dropped == "" || !keyed) {
			continue
		}
		heard++
		state, text, remedy := b.judge(p, n, b.leader(peers) != nil)
		found.add(console.TopicOtherBoard, state, fmt.Sprintf("%v %s", p, text), remedy)
	}
	switch {
	case heard == 0 && !keyed:
		found.unknown(console.TopicOtherBoard, "", "without the key nobody is understood")
	case heard == 0:
		found.right(console.TopicOtherBoard, "nobody of the group %q speaks on %s at the moment: this board would be the first",
			b.Config.Group, n.Interface)
	}
}

// judge says whether this board and another one go together. led says that a leader is heard.
func (b *Board) judge(p *peer, n daemon.Network, led bool) (state console.State, text, remedy string) {
	ours := daemon.SettingsOf(b.Config)
	dropped, remedy := p.foreign()
	switch {
	case p.drops[wire.OtherVersion] > 0 && !led:
		return console.StateWrong, "has another version of the protocol, so this board would stay out", remedy
	case p.accepted == 0:
		return console.StateLook, dropped + ", so the two do not hear each other", remedy
	case p.id == b.id(n) && p.from != n.Local.Addr():
		return console.StateWrong, fmt.Sprintf("has this board's id %v, and the one that starts later stays out", p.id), "give one of them another id"
	case p.algorithm != b.Config.Algorithm:
		text = fmt.Sprintf("runs the algorithm %v, and this board %v, so this board would stay out", p.algorithm, b.Config.Algorithm)
		return console.StateWrong, text, "set the same algorithm on all boards of the group"
	case p.settings.Told() && !p.settings.Equal(ours):
		text = fmt.Sprintf("has heartbeats every %v and the addresses %v, and this board every %v and %v",
			p.settings.Heartbeat, p.settings.Addresses, ours.Heartbeat, ours.Addresses)
		return console.StateLook, text, "write the same address and heartbeat into the config of all boards"
	case b.differs(p.program):
		text, remedy = b.versions(p.program)
		return console.StateLook, text, remedy
	case p.accepted > 1 && p.multicast == 0:
		return console.StateLook, "is heard, and its multicast does not arrive", "look for IGMP snooping without a querier at the switch or the access point"
	case p.leads:
		return console.StateRight, "leads", ""
	}
	return console.StateRight, "is heard", ""
}

// askSpacing is the time between two questions who has an address, and how long the answer to the last one may take.
const askSpacing = 250 * time.Millisecond

// answers asks by ARP who has these addresses, with this board's own address as the sender. A probe, which has no sender,
// would look like a claim to a board that is about to take the address (RFC 5227, section 2.1.1).
func answers(ctx context.Context, a *netio.Announcer, addrs []netip.Addr) (by map[netip.Addr][]string, err error) {
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
		if err := a.Ask(questions); err != nil {
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

// answers6 asks by Neighbor Discovery who has these IPv6 addresses, all at once.
func answers6(ctx context.Context, a *netio.Announcer, addrs []netip.Addr, by map[netip.Addr][]string) error {
	var mu sync.Mutex
	var asking sync.WaitGroup
	var failed error
	for _, addr := range addrs {
		asking.Go(func() {
			mac, found, err := a.Probe(ctx, addr, netio.ProbeCount, askSpacing)
			mu.Lock()
			defer mu.Unlock()
			failed = cmp.Or(failed, err)
			if found {
				by[addr] = append(by[addr], mac.String())
			}
		})
	}
	asking.Wait()
	return failed
}

// owners asks who has the floating addresses, which a board of the group may have, and whether another machine has this
// board's own address. speaks says that a board of the group has spoken from this board's address.
func (b *Board) owners(ctx context.Context, found section, n daemon.Network, peers []*peer, speaks, keyed bool) error {
	a, err := netio.OpenAnnouncer(n.Index, n.Local.Addr(), b.floating()...)
	if err != nil {
		found.unknown(console.TopicAddress, "", "%v", err)
		return nil
	}
	defer a.Close()
	mac, taken, err := a.Probe(ctx, n.Local.Addr(), 1, askSpacing)
	if err == nil && taken && !n.Owns(mac) {
		text, yields := daemon.JudgeDuplicate(n, mac, speaks)
		state := console.StateLook
		if yields {
			state = console.StateWrong
		}
		found.add(console.TopicInterface, state, text, "")
	}
	var asked, asked6 []netip.Addr
	for _, addr := range b.floating() {
		if addr.Is6() {
			asked6 = append(asked6, addr)
		} else {
			asked = append(asked, addr)
		}
	}
	for _, p := range peers {
		if text, _ := p.foreign(); p.accepted > 0 || text != "" {
			asked = append(asked, p.from)
		}
	}
	by, err := answers(ctx, a, asked)
	if err == nil {
		err = answers6(ctx, a, asked6, by)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	leader := b.leader(peers)
	for _, f := range b.Config.Addresses {
		switch {
		case err != nil:
			found.unknown(console.TopicAddress, "", "%v", err)
		case leader != nil && len(by[f.IP]) == 0:
			found.look(console.TopicAddress, "topdog status there", "%v leads, and nobody answers for %v", leader, f.IP)
		case leader != nil:
			answered(found, f.IP, leader, by)
		case len(by[f.IP]) == 0:
			found.right(console.TopicAddress, "nobody has %v at the moment", f.IP)
		default:
			b.taken(found, f.IP, by, peers, keyed)
		}
	}
	return nil
}

// floating are the floating addresses.
func (b *Board) floating() (all []netip.Addr) {
	for _, a := range b.Config.Addresses {
		all = append(all, a.IP)
	}
	return all
}

// answered reports who answers for a floating address while there is a leader. All interfaces of a board in one network
// answer for all of its addresses.
func answered(found section, address netip.Addr, leader *peer, by map[netip.Addr][]string) {
	for _, mac := range by[address] {
		if !slices.Contains(by[leader.from], mac) {
			found.look(console.TopicAddress, "if that is no interface of that board, another machine has the address",
				"%v leads, and %s answers for %v", leader, mac, address)
			return
		}
	}
	found.right(console.TopicAddress, "%v leads, and answers for %v", leader, address)
}

// taken reports a machine that has a floating address while nobody leads. The Ethernet address tells whether that machine
// is one of the boards that were heard.
func (b *Board) taken(found section, address netip.Addr, by map[netip.Addr][]string, peers []*peer, keyed bool) {
	mac := by[address][0]
	if !keyed {
		found.unknown(console.TopicAddress, "",
			"the machine %s has %v, and without the key nobody can tell whether it may", mac, address)
		return
	}
	who, remedy := "the machine "+mac, "choose another address, on all boards, or take it from that machine"
	for _, p := range peers {
		text, do := p.foreign()
		switch same := slices.Contains(by[p.from], mac); {
		case same && p.from == address:
			who = fmt.Sprintf("the board %v, as its own address,", p)
		case same && text != "":
			who, remedy = fmt.Sprintf("%v, which %s,", p, text), do
		}
	}
	if b.Config.TakeInUse {
		found.look(console.TopicAddress, remedy, "%s has %v, which this board would take from it, as take_in_use says",
			who, address)
	} else {
		found.wrong(console.TopicAddress, remedy, "%s has %v, and topdog takes no address that another machine has",
			who, address)
	}
}

// daemonFound reports what the daemon of this board knows.
func (b *Board) daemonFound(found section) {
	s := b.Daemon
	reason := ""
	if s.ReasonText != "" {
		reason = " (" + s.ReasonText + ")"
	}
	switch {
	case s.Role == console.RoleLeader && s.Holding:
		found.right(console.TopicDaemon, "runs and leads")
	case s.Role == console.RoleLeader:
		found.wrong(console.TopicDaemon, "", "runs and leads, and does not have the address")
	case s.Role == console.RoleFollower && s.Leader != "":
		found.right(console.TopicDaemon, "runs and follows %s", s.LeaderName)
	case s.Role == console.RoleFollower:
		found.look(console.TopicDaemon, "", "runs, and there is no leader")
	case s.Role == console.RoleCandidate:
		found.wrong(console.TopicDaemon, "", "runs, and has been asking who leads for a while%s", reason)
	default:
		found.wrong(console.TopicDaemon, "", "runs, and is %s%s, so it takes no part", s.Role, reason)
	}
	if s.Version != b.Version {
		found.look(console.TopicDaemon, "sudo systemctl restart topdog",
			"it is of another version (%s) than this program (%s)", s.Version, b.Version)
	}
	started, written := s.Board.Floating, daemon.SettingsOf(b.Config).Addresses
	if started != nil && fmt.Sprint(started) != fmt.Sprint(written) {
		found.look(console.TopicDaemon, "sudo systemctl restart topdog",
			"it was started with the addresses %v, and the configuration has %v", started, written)
	}
	if second := b.secondStarted(); second != b.Config.SecondInterface {
		found.look(console.TopicDaemon, "sudo systemctl restart topdog",
			"it was started with %s, and the configuration has %s", secondPathOn(second), secondPathOn(b.Config.SecondInterface))
	}
	about := map[string]bool{}
	for _, p := range s.Problems {
		if p.Kind == console.ProblemInterfaceAmbiguous || p.Kind == console.ProblemAddressElsewhere ||
			p.Kind == console.ProblemSecondPath && b.usesSecondPath() {
			continue // the network says so above
		}
		about[p.Board] = true
		found.look(console.TopicProblem, "", "%s", p.Text)
	}
	for i := range s.Boards {
		o := &s.Boards[i]
		switch {
		case o.Self || o.Stale || o.Gone || about[o.ID]:
		case b.differs(o.Version):
			text, remedy := b.versions(o.Version)
			found.look(console.TopicOtherBoard, remedy, "%s (%s) %s", o.Name, o.Address, text)
		default:
			found.right(console.TopicOtherBoard, "%s (%s) is heard", o.Name, o.Address)
		}
	}
	for _, name := range b.Config.Prefer {
		heard := func(o console.Board) bool { return strings.EqualFold(o.Name, name) && !o.Stale && !o.Gone }
		if !slices.ContainsFunc(s.Boards, heard) {
			found.look(console.TopicOtherBoard, "", "%s, which prefer names, is not heard: it is off, or has another name", name)
		}
	}
}
