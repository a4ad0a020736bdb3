package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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

// group is this board among the others: the sockets, the identity under which it
// sends, and the route to each board. All datagrams of the daemon are
// sent by [group.transmit]; only the holder, as the dead man's switch, sends
// one of its own, which [group.presign] has signed.
type group struct {
	shared
	link *link

	// Whom it speaks to.
	multicast netip.AddrPort // where Transport.Multicast sends to
	port      uint16         // where boards listen
	peers     []netip.Addr   // are sent by unicast what the group is sent by multicast
	routes    map[wire.ID]*route
	// broadcasts says that the heartbeats of this leader are broadcast as well.
	broadcasts bool
	resolve    func(netip.Addr) // has the kernel know the Ethernet address of a board

	// The sockets.
	transport   Transport      // nil while the link is closed
	local       netip.Addr     // the address that the transport was opened for
	readers     sync.WaitGroup // of the transport
	unlimited   string         // why the kernel drops no floods, as it was logged last
	inbox       *inbox         // what the readers have verified waits here for the loop
	multicastAt time.Duration  // when multicast was heard last, or the group joined
	changes     int            // counts those of transport, peers and keys

	// Who this board is.
	configuredID wire.ID
	self         wire.ID // Nobody until the board's own address is known
	incarnation  wire.Incarnation
	sequence     wire.Sequence // of what was sent last
	outdated     bool          // the id belongs to another board now; a new one is due
	mute         func() bool   // whether it must say nothing, see tellsOthers

	// From messages to datagrams and back.
	codec     *wire.Codec // the loop signs with it, and the readers verify
	sightings sightings
	toldAnew  bool               // a board has told other settings than before, or another name
	settings  wire.Settings      // of this board
	program   string             // the version of this program, as far as it fits
	guard     *wire.Guard        // nil until the board's own address is known
	header    func() wire.Header // of what this board sends without the core
	out       []byte             // the datagram that was sent last

	refusals map[netip.Addr]refusal
	counts   groupCounts
	lost     uint64 // for which there was no room anywhere, as it was looked up last
}

// groupCounts count what becomes of packets.
type groupCounts struct {
	received, sent, sendErrors, withoutRoute, rejoined uint64
	dropped                                            [wire.DropReasons]uint64
}

func newGroup(s shared, cfg *config.Config, l *link, resolve func(netip.Addr)) (*group, error) {
	codec, err := wire.NewCodec(cfg.Group, cfg.Keys.Secrets()...)
	if err != nil {
		return nil, err
	}
	return &group{
		shared: s, link: l, resolve: resolve,
		multicast: cfg.Multicast, port: cfg.Multicast.Port(), peers: cfg.Peers,
		inbox:        newInbox(inboxSize, codec),
		configuredID: cfg.ID, incarnation: newIncarnation(), codec: codec,
		routes: make(map[wire.ID]*route), sightings: make(sightings), refusals: make(map[netip.Addr]refusal), settings: SettingsOf(cfg),
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

// muteWhile names who says whether this board must say nothing. What the core wants said is withheld in
// carryOut; what the guard wants said is no effect.
func (g *group) muteWhile(mute func() bool) { g.mute = mute }

// identify begins the board's life under an id. header is that of its messages.
func (g *group) identify(self wire.ID, header func() wire.Header) {
	g.self, g.header = self, header
	g.guard = wire.NewGuard(self, g.incarnation, g.codec.Keys(), wire.RandomNonce)
}

// setCodec has this board sign and verify with other keys from now on. What was believed by a
// key that is gone is not believed any more, and what was signed in advance is signed anew.
func (g *group) setCodec(codec *wire.Codec) {
	g.codec = codec
	g.inbox.use(codec)
	g.changes++
	g.sightings.keep(codec.Keys())
	if g.guard != nil {
		g.guard.AcceptKeys(codec.Keys())
	}
}

// lastSequence is the sequence number from which on a new incarnation is due: at
// ten milliseconds between heartbeats it takes more than a year to come here.
const lastSequence = ^wire.Sequence(0) - 1<<16

// identityDue reports whether the board needs a new incarnation, and perhaps a new id.
func (g *group) identityDue() bool {
	return g.transport != nil && (g.outdated || g.sequence > lastSequence)
}

// forget ends the life of this incarnation.
func (g *group) forget() {
	g.outdated = false
	g.incarnation, g.sequence = newIncarnation(), 0
	if g.transport != nil {
		g.transport.SetIncarnation(g.incarnation)
	}
	clear(g.routes)
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
	g.readers.Go(func() {
		if err := t.Serve(g.inbox.deliver); err != nil {
			g.tasks.tryPost(func() { g.reporter.log.Errorf("read the sockets: %v", err) })
		}
	})
}

// close closes the sockets, and waits for their readers. What they have read and the loop has not handled goes with them,
// as what still waits in the sockets does: so nothing is ever received without a transport.
func (g *group) close() {
	if g.transport == nil {
		return
	}
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

// members are the boards that are configured, present or not. A peer is configured
// by its address, which is its id as well unless somebody gave it another one. A
// board that was given one itself takes its peers to be like it, and knows nothing.
func (g *group) members(local netip.Addr) (ids []wire.ID) {
	if g.chooseID(local) != wire.IDFromAddr(local) {
		return nil
	}
	for _, peer := range g.peers {
		ids = append(ids, wire.IDFromAddr(peer))
	}
	return ids
}

// rejoinAfter is how long multicast may stay away. The leader's heartbeats or
// anybody's HELLO come far more often, and to join a group again costs two packets.
const rejoinAfter = 30 * time.Second

// due is when the group is joined again.
func (g *group) due() time.Duration {
	if g.transport == nil {
		return never
	}
	return g.multicastAt + rejoinAfter
}

// rejoin joins the group again when that is due: Wi-Fi drivers and switches have
// been observed to lose a membership unnoticed. The kernel takes the same lock for that as for a renewal, so
// it is done beside the loop.
func (g *group) rejoin(now time.Duration) {
	if now < g.due() {
		return
	}
	g.multicastAt = now
	g.counts.rejoined++
	transport := g.transport
	g.tasks.start(func(context.Context) error {
		if err := transport.Rejoin(); err != nil {
			g.tasks.post(func() {
				if transport == g.transport { // else it was closed meanwhile
					g.noteSend(err)
				}
			})
		}
		return nil
	})
}

// counters fills in what is counted about packets.
func (g *group) counters(c *console.Counters) {
	c.PacketsReceived = g.counts.received
	c.PacketsSent = g.counts.sent
	c.ReceiveOverruns = g.inbox.overruns.Load()
	c.SendErrors = g.counts.sendErrors
	c.MessagesWithoutRoute = g.counts.withoutRoute
	c.GroupRejoined = g.counts.rejoined
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
		c.ReceiveErrors = drops.ReceiveErrors
	}
}

// keysRemembered is for how long it is known which keys a board has told of that is silent. A board
// that was off for longer is one that nobody waits for.
const keysRemembered = 24 * time.Hour

// sighting is when a board was heard last, and what it has told of itself.
type sighting struct {
	first, at time.Duration // for the first time, and the last
	addr      netip.Addr
	// byHolder says that its last message was the RESIGN of its holder: its daemon has ended, or stands still.
	byHolder bool
	name     string
	// program is the version of its program, and settings are those that it has told.
	program  string
	settings wire.Settings
	keys     wire.Keys        // zero until it has told
	key      wire.Fingerprint // that has verified its last message
}

// sightings are those of the boards that were heard since the daemon started. The roster of the
// core is none: it begins anew when this board gets another id.
type sightings map[wire.ID]*sighting

// note enters a message that was accepted, and reports whether it tells another name or other settings than before.
// port is that of the group: the holder sends from another one.
func (s sightings) note(now time.Duration, m *wire.Message, from netip.AddrPort, port uint16) (news bool) {
	seen, ok := s[m.Sender]
	if !ok {
		if len(s) >= wire.MaxBoards {
			s.forgetOldest()
		}
		seen = &sighting{first: now}
		s[m.Sender] = seen
	}
	seen.at, seen.addr, seen.key = now, from.Addr(), m.Key
	seen.byHolder = m.Type == wire.TypeResign && from.Port() != port
	if m.Type == wire.TypeHello {
		if news = seen.name != m.Hello.Name || !seen.settings.Equal(m.Hello.Settings); news {
			seen.settings = m.Hello.Settings.Clone() // the message is used again
		}
		seen.name, seen.keys, seen.program = m.Hello.Name, m.Hello.Keys, m.Hello.Program
	}
	return news
}

func (s sightings) forgetOldest() {
	var oldest wire.ID
	var at time.Duration
	found := false
	for id, seen := range s {
		if !found || seen.at < at {
			oldest, at, found = id, seen.at, true
		}
	}
	delete(s, oldest)
}

// keep forgets the boards that were heard last with another key than these. Whoever has that key may have made them
// up, and a change of the key would wait for them for a day. One that lives is soon heard again.
func (s sightings) keep(keys wire.Keys) {
	for id, seen := range s {
		if !keys.Accept(seen.key) {
			delete(s, id)
		}
	}
}

// takeToldAnew reports whether a board has told other settings, or another name, since it was asked last.
func (g *group) takeToldAnew() bool {
	told := g.toldAnew
	g.toldAnew = false
	return told
}

// hasAddresses reports whether a leader would hold all floating addresses of this board, as far as it has told.
func (g *group) hasAddresses(leader wire.ID) bool {
	seen := g.sightings[leader]
	if leader == g.self || seen == nil || !seen.settings.Told() {
		return true
	}
	return !slices.ContainsFunc(g.settings.Addresses, func(a netip.Addr) bool { return !slices.Contains(seen.settings.Addresses, a) })
}

// route says where another board is reached, and when it was heard by which path.
type route struct {
	addr                               netip.AddrPort
	multicastAt, broadcastAt, directAt time.Duration
	toldAt                             time.Duration // when something was last sent to it alone
}

// refusal says why packets from an address are refused. Anybody may have put that address into a packet.
type refusal struct {
	reason      wire.DropReason
	first, last time.Duration
}

// noteSend notes the outcome of a send. A link that is down is no problem of its
// own: the watch over the link reports it, and nothing here could be done about it.
func (g *group) noteSend(err error) {
	if err == nil {
		return
	}
	g.counts.sendErrors++
	if !isLinkDown(err) {
		g.reporter.warn(console.ProblemSend, err.Error(), time.Minute)
	}
}

// SettingsOf are what a configuration says of what all boards of the group must have alike, as the wire carries it.
func SettingsOf(cfg *config.Config) wire.Settings {
	s := wire.Settings{Heartbeat: (cfg.Interval + time.Millisecond - 1).Truncate(time.Millisecond), Addresses: ipsOf(cfg.Addresses)}
	sort.Slice(s.Addresses, func(i, j int) bool { return s.Addresses[i].Less(s.Addresses[j]) })
	return s
}
