package examine

import (
	"context"
	"fmt"
	"net/netip"
	"sort"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
	"topdog/wire"
)

// peer is who speaks from one address, of this group or not, and what was heard.
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

// listener collects peers.
type listener struct {
	mu    sync.Mutex
	codec *wire.Codec
	peers map[netip.Addr]*peer
}

// maxPeers bounds what is remembered: anybody can send with any address.
const maxPeers = wire.MaxBoards

// hear is told of each datagram.
func (l *listener) hear(d netio.Datagram) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[d.From.Addr()]
	if p == nil {
		if len(l.peers) == maxPeers {
			return
		}
		p = &peer{from: d.From.Addr()}
		l.peers[p.from] = p
	}
	var m wire.Message
	if drop := l.codec.Decode(&m, d.Data); drop.Dropped() {
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

// all returns the peers in order.
func (l *listener) all() (all []*peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		all = append(all, p)
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
	peers, arrivals, err := b.listen(ctx, n)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		add(console.TopicSockets, console.StateWrong, err.Error(), "")
		return nil
	case arrivals.Counted && arrivals.Heard == 0 && arrivals.Seen >= daemon.FirewallLoss:
		add(console.TopicFirewall, console.StateWrong, daemon.Blocked(n.Interface, b.Config.Multicast.Port()), "")
	default:
		b.boards(add, n, peers, keyed)
	}
	return b.owners(ctx, add, n, peers, arrivals.FromOwn > 0, keyed)
}

// listen hears the group for a while, by the sockets that a daemon would have.
func (b *Board) listen(ctx context.Context, n daemon.Network) (peers []*peer, arrivals netio.Arrivals, err error) {
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
	l := &listener{codec: codec, peers: map[netip.Addr]*peer{}}
	before := transport.Arrivals()
	var serving sync.WaitGroup
	serving.Go(func() { _ = transport.Serve(l.hear) }) // its error is that it was closed
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
	return l.all(), arrivals, nil
}

// id is that of this board.
func (b *Board) id(n daemon.Network) wire.ID {
	if b.Config.ID != wire.Nobody {
		return b.Config.ID
	}
	return wire.IDFromAddr(n.Local.Addr())
}

// leader is the board that leads, if one is heard that this board would follow.
func (b *Board) leader(peers []*peer) *peer {
	for _, p := range peers {
		if p.accepted > 0 && p.leads && p.algorithm == b.Config.Algorithm {
			return p
		}
	}
	return nil
}

// differs reports whether another board has told of another version of the program than this one's.
func (b *Board) differs(program string) bool {
	return program != "" && program != daemon.ProgramName(b.Version)
}

// versions says so, and what to do.
func (b *Board) versions(program string) (text, remedy string) {
	return fmt.Sprintf("runs topdog %s, and this board has %s", program, b.Version), "upgrade the board that has the older one"
}

// boards says who was heard.
func (b *Board) boards(add adder, n daemon.Network, peers []*peer, keyed bool) {
	heard := 0
	ours := daemon.SettingsOf(b.Config)
	for _, p := range peers {
		text, remedy := p.foreign()
		state := console.StateLook
		switch {
		case p.accepted == 0 && (text == "" || !keyed):
			continue
		case p.drops[wire.OtherVersion] > 0 && b.leader(peers) == nil:
			state, text = console.StateWrong, "has another version of the protocol, so this board would stay out"
		case p.accepted == 0:
			text += ", so the two do not hear each other"
		case p.id == b.id(n) && p.from != n.Local.Addr():
			state, text, remedy = console.StateWrong, fmt.Sprintf("has this board's id %v, and the one that starts later stays out", p.id), "give one of them another id"
		case p.algorithm != b.Config.Algorithm:
			state, text, remedy = console.StateWrong, fmt.Sprintf("runs the algorithm %v, and this board %v, so this board would stay out", p.algorithm, b.Config.Algorithm),
				"set the same algorithm on all boards of the group"
		case p.settings.Told() && !p.settings.Equal(ours):
			text, remedy = fmt.Sprintf("has heartbeats every %v and the addresses %v, and this board every %v and %v",
				p.settings.Heartbeat, p.settings.Addresses, ours.Heartbeat, ours.Addresses), "write the same address and heartbeat into the config of all boards"
		case b.differs(p.program):
			text, remedy = b.versions(p.program)
		case p.accepted > 1 && p.multicast == 0:
			text, remedy = "is heard, and its multicast does not arrive", "look for IGMP snooping without a querier at the switch or the access point"
		case p.leads:
			state, text, remedy = console.StateRight, "leads", ""
		default:
			state, text, remedy = console.StateRight, "is heard", ""
		}
		heard++
		add(console.TopicOtherBoard, state, fmt.Sprintf("%v %s", p, text), remedy)
	}
	switch {
	case heard == 0 && !keyed:
		add(console.TopicOtherBoard, console.StateUnknown, "without the key nobody is understood", "")
	case heard == 0:
		add(console.TopicOtherBoard, console.StateRight, fmt.Sprintf("nobody of the group %q speaks on %s at the moment: this board would be the first", b.Config.Group, n.Interface), "")
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
		o := &s.Boards[i]
		switch {
		case o.Self || o.Stale || o.Gone || about[o.ID]:
		case b.differs(o.Version):
			text, remedy := b.versions(o.Version)
			add(console.TopicOtherBoard, console.StateLook, fmt.Sprintf("%s (%s) %s", o.Name, o.Address, text), remedy)
		default:
			add(console.TopicOtherBoard, console.StateRight, fmt.Sprintf("%s (%s) is heard", o.Name, o.Address), "")
		}
	}
}
