package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sort"
	"sync"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// group is this board among the others: the sockets, the identity under which it sends, and what is known of each board. All
// datagrams of the daemon are sent by [group.transmit]; only the holder, as the dead man's switch, sends one of its own,
// which [group.presign] has signed.
type group struct {
	shared
	link     *link
	exchange *exchange // with the other groups of this board
	name     string    // of the group on this path
	tag      wire.GroupTag

	// Whom it speaks to.
	multicast netip.AddrPort // where Transport.Multicast sends to
	port      uint16         // where boards listen
	peers     []netip.Addr   // get by unicast what the group gets by multicast
	// broadcasts says that the heartbeats of this leader are broadcast as well.
	broadcasts bool
	resolve    func(netip.Addr) // has the kernel know the Ethernet address of a board
	// apart says that what comes by another interface says nothing of this path.
	apart bool
	// second says that this is the second path.
	second bool

	// The sockets.
	transport   Transport      // nil while the link is closed
	local       netip.Addr     // the address that the transport was opened for
	readers     sync.WaitGroup // of the transport
	unlimited   string         // why the kernel drops no floods, as it was logged last
	inbox       *inbox         // what the readers have verified waits here for the loop
	multicastAt time.Duration  // when multicast was heard last, or the group joined
	changes     int            // counts those of transport, peers and keys

	*identity
	mute func() bool // whether it must say nothing, see steps.State.Withholds; the guard's replies are no effects

	// From messages to datagrams and back.
	codec    *wire.Codec        // the loop signs with it, and the readers verify
	settings wire.Settings      // of this board
	program  string             // the version of this program, as far as it fits
	guard    *wire.Guard        // nil until the board's own address is known
	header   func() wire.Header // of what this board sends without the core
	out      []byte             // the datagram that was sent last

	boards   boards
	refusals map[netip.Addr]refusal
	counts   groupCounts
	lost     uint64 // packets for which there was no room anywhere, by the last look
}

// identity is who this board is, on both paths.
type identity struct {
	configuredID wire.ID
	self         wire.ID // Nobody until the board's own address is known
	incarnation  wire.Incarnation
	sequence     wire.Sequence // of what was sent last
	outdated     bool          // the id belongs to another board now; a new one is due
}

// groupCounts count what becomes of packets.
type groupCounts struct {
	received, sent, sendErrors, withoutRoute, rejoined uint64
	dropped                                            [wire.DropReasons]uint64
}

func newGroup(s shared, cfg *config.Config, l *link, e *exchange, resolve func(netip.Addr)) (*group, error) {
	codec, err := wire.NewCodec(cfg.Group, cfg.Keys.Secrets()...)
	if err != nil {
		return nil, err
	}
	return &group{
		shared: s, link: l, exchange: e, name: cfg.Group, tag: wire.TagOf(cfg.Group), resolve: resolve,
		multicast: cfg.Multicast, port: cfg.Multicast.Port(), peers: cfg.Peers,
		inbox:    newInbox(inboxSize, codec),
		identity: &identity{configuredID: cfg.ID, incarnation: newIncarnation()}, codec: codec,
		boards: make(boards), refusals: make(map[netip.Addr]refusal), settings: SettingsOf(cfg),
	}, nil
}

// newIncarnation draws a random number that is not zero.
func newIncarnation() wire.Incarnation {
	var b [4]byte
	for {
		rand.Read(b[:])
		if i := wire.Incarnation(binary.BigEndian.Uint32(b[:])) & wire.MaxIncarnation; i != 0 {
			return i
		}
	}
}

// chooseID returns the board's id: the configured one, or else its own address.
func (g *group) chooseID(local netip.Addr) wire.ID {
	if g.configuredID != wire.Nobody {
		return g.configuredID
	}
	return wire.IDFromAddr(local)
}

// arrivals counts what has arrived for all boards; not ok while nothing is open.
func (g *group) arrivals() (a netio.Arrivals, ok bool) {
	if g.transport == nil {
		return a, false
	}
	return g.transport.Arrivals(), true
}

// byAnyInterface says whether what is sent to this board alone may come by any interface.
func (g *group) byAnyInterface(may bool) {
	if g.transport != nil {
		g.reporter.failed("hear by other interfaces", g.transport.ByAnyInterface(may))
	}
}

// identify begins the board's life under an id. header is that of its messages.
func (g *group) identify(self wire.ID, header func() wire.Header) {
	g.self, g.header = self, header
	g.guard = wire.NewGuard(self, g.incarnation, g.codec.Keys(), wire.RandomNonce)
}

// setCodec has this board sign and verify with other keys from now on. What was believed because of a key that is gone is not
// believed any more, and what was signed in advance is signed anew.
func (g *group) setCodec(codec *wire.Codec) {
	g.codec = codec
	g.inbox.use(codec)
	g.changes++
	g.boards.keep(codec.Keys())
	if g.guard != nil {
		g.guard.AcceptKeys(codec.Keys())
	}
}

// lastSequence is the sequence number from which on a new incarnation is due: at ten milliseconds between heartbeats it takes
// more than a year to come here.
const lastSequence = ^wire.Sequence(0) - 1<<16

// identityDue reports whether the board needs a new incarnation, and perhaps a new id.
func (g *group) identityDue() bool {
	return g.transport != nil && (g.outdated || g.sequence > lastSequence)
}

// renew ends the life of this incarnation.
func (i *identity) renew() {
	i.outdated = false
	i.incarnation, i.sequence = newIncarnation(), 0
}

// tellIncarnation has the sockets know their own packets.
func (g *group) tellIncarnation() {
	if g.transport != nil {
		g.transport.SetIncarnation(g.incarnation)
	}
}

// open begins to receive.
func (g *group) open(t Transport, local netip.Addr) {
	g.transport, g.local = t, local
	t.SetIncarnation(g.incarnation)
	if why := t.Unlimited(); why != g.unlimited {
		g.unlimited = why
		if why != "" {
			g.reporter.log.Infof("the kernel drops no floods, so this daemon does, which takes more time: %s", why)
		}
	}
	g.changes++
	g.multicastAt = g.now()
	own := openGroup{g.tag, g.inbox, local, t}
	g.exchange.add(own)
	g.readers.Go(func() {
		if err := t.Serve(func(d netio.Datagram) { g.exchange.deliver(own, d) }); err != nil {
			g.tasks.tryPost(func() { g.reporter.log.Errorf("read the sockets: %v", err) })
		}
	})
}

// close closes the sockets, and waits for their readers. What they have read and the loop has not handled is dropped, like
// what still waits in the sockets: so nothing is ever received without a transport.
func (g *group) close() {
	if g.transport == nil {
		return
	}
	g.exchange.remove(g.inbox)
	g.reporter.failed("close the sockets", g.transport.Close())
	g.readers.Wait()
	g.transport = nil
	g.inbox.clear()
}

// setPeers replaces the boards that are spoken to by unicast as well.
func (g *group) setPeers(peers []netip.Addr) {
	if !slices.Equal(g.peers, peers) {
		g.peers = peers
		g.changes++
	}
}

// members are the boards that are configured, present or not. A peer is configured by its address, which is its id as
// well unless somebody gave it another one. A board that was itself given another id assumes the same of its peers,
// and so knows no member.
func (g *group) members(local netip.Addr) (ids []wire.ID) {
	if g.chooseID(local) != wire.IDFromAddr(local) {
		return nil
	}
	for _, peer := range g.peers {
		ids = append(ids, wire.IDFromAddr(peer))
	}
	return ids
}

// rejoinAfter is how long multicast may stay away. The leader's heartbeats or anybody's HELLO come far more often, and to join
// a group again costs two packets.
const rejoinAfter = 30 * time.Second

// rejoin joins the group again when that is due: Wi-Fi drivers and switches have been observed to lose a membership
// unnoticed. The kernel takes the same lock for that as for a renewal, so it is done in a task.
func (g *group) rejoin(now time.Duration) {
	if g.transport == nil || now < g.multicastAt+rejoinAfter {
		return
	}
	g.multicastAt = now
	g.counts.rejoined++
	transport := g.transport
	g.tasks.start(func(context.Context) {
		if err := transport.Rejoin(); err != nil {
			g.tasks.post(func() {
				if transport == g.transport { // else it was closed meanwhile
					g.noteSend(err)
				}
			})
		}
	})
}

// counters adds what is counted about packets.
func (g *group) counters(c *console.Counters) {
	c.PacketsReceived += g.counts.received
	c.PacketsSent += g.counts.sent
	c.ReceiveOverruns += g.inbox.overruns.Load()
	c.SendErrors += g.counts.sendErrors
	c.MessagesWithoutRoute += g.counts.withoutRoute
	c.GroupRejoined += g.counts.rejoined
	drop := func(reason string, count uint64) {
		if count > 0 {
			c.DroppedByReason[reason] += count
		}
	}
	for reason, count := range g.counts.dropped {
		byReaders := g.inbox.dropped[reason].Load()
		c.PacketsReceived += byReaders
		drop(wire.DropReason(reason).Identifier(), count+byReaders)
	}
	if g.transport != nil {
		drops := g.transport.Drops()
		drop(console.DroppedWrongTTL, drops.WrongTTL)
		drop(wire.TooShort.Identifier(), drops.Short)
		drop(wire.TooLong.Identifier(), drops.Truncated)
		drop(wire.OtherGroup.Identifier(), drops.OtherGroup)
		drop(console.DroppedOverRate, drops.OverRate+g.inbox.overRate.Load())
		drop(console.DroppedLocalUser, drops.LocalUser)
		c.ReceiveOverruns += drops.Overflows
		c.ReceiveErrors += drops.ReceiveErrors
	}
}

// noteSend notes the outcome of a send. A link that is down is no problem of its own: the watch over the link reports it, and
// nothing could be done about it here.
func (g *group) noteSend(err error) {
	if err == nil {
		return
	}
	g.counts.sendErrors++
	if !errors.Is(err, netio.ErrLinkDown) {
		g.reporter.warn(console.ProblemSend, err.Error())
	}
}

// SettingsOf are the settings that all boards of the group must have alike, as the wire carries them.
func SettingsOf(cfg *config.Config) wire.Settings {
	heartbeat := (cfg.Interval + time.Millisecond - 1).Truncate(time.Millisecond)
	s := wire.Settings{Heartbeat: heartbeat, Addresses: ipsOf(cfg.Addresses)}
	sort.Slice(s.Addresses, func(i, j int) bool { return s.Addresses[i].Less(s.Addresses[j]) })
	return s
}
