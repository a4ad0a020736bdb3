package election

import (
	"slices"
	"time"

	"topdog/wire"
)

// Peer is what a board knows of another one.
type Peer struct {
	ID          wire.ID
	Incarnation wire.Incarnation
	Priority    uint8
	Grade       wire.Grade
	Name        string
	Leading     bool    // it said so in its last message
	Following   wire.ID // by its last HELLO
	Gone        bool    // it said that it leaves, or was replaced because it was silent; until it is heard again
	Left        bool    // it said that it leaves

	LastHeard     Instant       // when its last message of any kind came
	NoMulticast   bool          // by its last HELLO, it hears its leader, and not by multicast
	HelloInterval time.Duration // it says HELLO this often; 0 until the first one
	newest        newest        // of its messages
	followed      bool          // it has said that it follows this board
	followedAt    Instant       // when it said so last
	StartedAt     Instant       // when its process started, by its last HELLO
	Score         uint32        // by its last message that told one
	ScoreKnown    bool          // there was such a message
	Expected      bool          // it is configured and was never heard
}

// newest has the sequence number of the newest message by the mark of the key that verified it. The two keys that a
// board accepts differ in their marks, so what one of them has told can be forgotten alone, see [Core.KeyDropped].
type newest [2]wire.Sequence

// sequence is that of the newest message, whichever key has verified it.
func (n newest) sequence() wire.Sequence { return max(n[0], n[1]) }

// Rank returns the peer's rank.
func (p *Peer) Rank() Rank {
	return Rank{Grade: p.Grade, Priority: p.Priority, ID: p.ID, Score: p.Score}
}

// helloLosses is how many HELLOs in a row may be lost before a peer counts as
// dead. At 40 % loss five in a row are lost once in a hundred times.
const helloLosses = 5

// Live reports whether the peer has been heard lately.
func (p *Peer) Live(now Instant) bool {
	every := max(p.HelloInterval, helloFloor)
	return !p.Gone && !p.Expected && now-p.LastHeard < helloLosses*every
}

// helloFloor is the shortest time between two HELLOs of a board, and helloShare
// how much is added per board: all HELLOs together stay at 8 packets a second.
const (
	helloFloor = time.Second
	helloShare = 125 * time.Millisecond
)

// roster is what a board has learned of the others, ordered by id. It is
// learned, never configured, and holds at most wire.MaxBoards peers.
type roster struct {
	peers []Peer
}

func (r *roster) index(id wire.ID) (int, bool) {
	return slices.BinarySearchFunc(r.peers, id, func(p Peer, id wire.ID) int {
		switch {
		case p.ID < id:
			return -1
		case p.ID > id:
			return 1
		}
		return 0
	})
}

// Peer returns the peer with that id, or nil. The pointer is good until the
// roster learns of another board.
func (r *roster) Peer(id wire.ID) *Peer {
	if i, ok := r.index(id); ok {
		return &r.peers[i]
	}
	return nil
}

// Heard enters what a message's header tells. It returns nil when the roster is
// full of live boards.
func (r *roster) Heard(now Instant, h *wire.Header) *Peer {
	i, ok := r.index(h.Sender)
	if !ok {
		if len(r.peers) >= wire.MaxBoards-1 && !r.forget(now) {
			return nil
		}
		i, _ = r.index(h.Sender)
		r.peers = slices.Insert(r.peers, i, Peer{ID: h.Sender})
	}
	p := &r.peers[i]
	if p.Expected || p.Incarnation != h.Incarnation {
		*p = Peer{ID: h.Sender, Incarnation: h.Incarnation, Name: p.Name}
	}
	p.Priority, p.Grade = h.Priority, h.Grade
	p.Leading = h.Leading
	p.LastHeard = now
	p.newest[h.Key.Mark()] = h.Sequence
	p.Gone, p.Left = false, false
	return p
}

// Expect enters a board that was never heard. It counts as dead until it is.
func (r *roster) Expect(id wire.ID) {
	i, ok := r.index(id)
	if !ok && len(r.peers) < wire.MaxBoards-1 {
		r.peers = slices.Insert(r.peers, i, Peer{ID: id, Priority: DefaultPriority, Expected: true})
	}
}

// forget drops the dead peer that has been silent for longest, to make room.
func (r *roster) forget(now Instant) bool {
	oldest := -1
	for i := range r.peers {
		p := &r.peers[i]
		if !p.Live(now) && (oldest < 0 || p.LastHeard < r.peers[oldest].LastHeard) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	r.peers = slices.Delete(r.peers, oldest, oldest+1)
	return true
}

// DeclareDead takes a peer for dead until it is heard again.
func (r *roster) DeclareDead(id wire.ID) {
	if p := r.Peer(id); p != nil {
		p.Gone = true
	}
}

// Leaves takes a peer for dead that has said that it leaves.
func (r *roster) Leaves(id wire.ID) {
	r.DeclareDead(id)
	if p := r.Peer(id); p != nil {
		p.Left = true
	}
}

// eligible reports whether a peer could lead now, without the one that is
// excluded (the leader under suspicion, usually).
func (p *Peer) eligible(now Instant, excluded wire.ID) bool {
	return p.ID != excluded && p.Live(now) && p.Rank().Eligible()
}

// Order reports whether the rank a comes before b.
type Order func(a, b Rank) bool

// Heir returns the first of the live peers that may lead, other than excluded.
func (r *roster) Heir(now Instant, excluded wire.ID, above Order) (heir wire.ID, ok bool) {
	var best Rank
	for i := range r.peers {
		p := &r.peers[i]
		if p.eligible(now, excluded) && (!ok || above(p.Rank(), best)) {
			best, heir, ok = p.Rank(), p.ID, true
		}
	}
	return heir, ok
}

// Above counts the live peers, other than excluded, that outrank rank and may
// lead. It is a board's place in the line of succession: 0 is the heir.
func (r *roster) Above(now Instant, rank Rank, excluded wire.ID, above Order) (n int) {
	for i := range r.peers {
		p := &r.peers[i]
		if p.eligible(now, excluded) && above(p.Rank(), rank) {
			n++
		}
	}
	return n
}

// Which returns the ids of the peers that satisfy a condition, in their order,
// whether they live or not. It is never nil.
func (r *roster) Which(holds func(*Peer) bool) []wire.ID {
	ids := make([]wire.ID, 0, len(r.peers))
	for i := range r.peers {
		if holds(&r.peers[i]) {
			ids = append(ids, r.peers[i].ID)
		}
	}
	return ids
}

// All returns the ids of all peers, whether they live or not.
func (r *roster) All() []wire.ID { return r.Which(func(*Peer) bool { return true }) }

// LosesMulticast reports whether a live peer says that it gets no multicast.
func (r *roster) LosesMulticast(now Instant) bool {
	return slices.ContainsFunc(r.peers, func(p Peer) bool { return p.NoMulticast && p.Live(now) })
}

// HeardBesides reports whether a peer other than one was ever heard.
func (r *roster) HeardBesides(one wire.ID) bool {
	return slices.ContainsFunc(r.peers, func(p Peer) bool { return p.ID != one && !p.Expected })
}

// Followed reports whether a live peer other than except says that it follows leader.
func (r *roster) Followed(now Instant, leader, except wire.ID) bool {
	return slices.ContainsFunc(r.peers, func(p Peer) bool {
		return p.ID != except && p.Following == leader && p.Live(now)
	})
}

// Live counts the live peers.
func (r *roster) Live(now Instant) (n int) {
	for i := range r.peers {
		if r.peers[i].Live(now) {
			n++
		}
	}
	return n
}

// Peers returns copies of those that have been heard, ordered by id.
func (r *roster) Peers() []Peer {
	return slices.DeleteFunc(slices.Clone(r.peers), func(p Peer) bool { return p.Expected })
}
