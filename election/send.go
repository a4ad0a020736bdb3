package election

import (
	"time"
	"topdog/wire"
)

// send sends a message to one board, or to the whole group if that is wire.Nobody.
func (c *Core) send(to wire.ID, m wire.Message) {
	header := c.Signature()
	header.Type, header.Reply = m.Type, m.Reply
	m.Header = header
	e := Effect{Kind: EffectSend, To: to, Message: m, Broadcast: to == wire.Nobody && (!steady(&m) || c.losesMulticast() || c.seeksCompany(&m))}
	if c.hooks.electorate != nil && c.role == Leader && (m.Type == wire.TypeHeartbeat || m.Type == wire.TypeCoordinator) {
		e.Beat = c.hooks.electorate.Sending(to, &m)
	}
	c.effects = append(c.effects, e)
}

// Sent tells which sequence a message has got whose effect has that Beat. It is to be called
// when the message was sent, before the next call. The effects stay good.
func (c *Core) Sent(beat uint32, sequence wire.Sequence) {
	if c.hooks.electorate != nil {
		c.hooks.electorate.Sent(beat, sequence)
	}
}

// sendFloating sends a message to whoever has the floating address. It finds a leader of
// whom no other address is known, and to which neither multicast nor broadcast gets through.
func (c *Core) sendFloating(m wire.Message) {
	c.send(wire.Nobody, m)
	e := &c.effects[len(c.effects)-1]
	e.Broadcast, e.Floating = false, true
}

// steady reports whether a message is of those that are sent all the time, or for seconds. Only multicast
// is cheap enough for them: a broadcast wakes every host on the LAN.
func steady(m *wire.Message) bool {
	switch m.Type {
	case wire.TypeHeartbeat:
		return !m.Reply
	case wire.TypeHello, wire.TypeOK, wire.TypeReport, wire.TypePause, wire.TypeRival:
		return true
	default:
		return false
	}
}

// tell sends what concerns several boards: as one multicast that the others ignore, or as
// a unicast to each, as the configuration has it. nil means everybody.
func (c *Core) tell(audience []wire.ID, m wire.Message) {
	if c.cfg.Fanout == FanoutMulticast {
		c.multicast(m)
		c.effects[len(c.effects)-1].Audience = audience
		return
	}
	if audience == nil {
		audience = c.roster.All()
	}
	for _, id := range audience {
		c.send(id, m)
	}
}

// multicast sends to the whole group.
func (c *Core) multicast(m wire.Message) { c.send(wire.Nobody, m) }

func (c *Core) emit(kind EffectKind) { c.effects = append(c.effects, Effect{Kind: kind}) }

// notices are when each notice was given last.
type notices map[Notice]Instant

// noticeInterval bounds how often the same notice is given.
const noticeInterval = time.Minute

// notify tells people of something, unless they were told within noticeInterval.
func (c *Core) notify(n Notice) {
	if at, ok := c.notices[n]; ok && c.now-at < noticeInterval {
		return
	}
	if len(c.notices) >= wire.MaxBoards {
		clear(c.notices)
	}
	c.notices[n] = c.now
	c.effects = append(c.effects, Effect{Kind: EffectNotice, Notice: n})
}
