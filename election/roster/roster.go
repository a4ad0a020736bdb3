// Package roster knows who is there: the boards that were heard, how they are ranked, and which of
// them lives. It is asked, and decides nothing.
package roster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"topdog/election/clock"
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

	LastHeard     clock.Instant // when its last message of any kind came
	NoMulticast   bool          // by its last HELLO, it hears its leader, and not by multicast
	HelloInterval time.Duration // it says HELLO this often; 0 until the first one
	newest        newest        // of its messages
	followed      bool          // it has said that it follows this board
	followedAt    clock.Instant // when it said so last
	StartedAt     clock.Instant // when its process started, by its last HELLO
	Score         uint32        // by its last message that told one
	ScoreKnown    bool          // a message has told the score
	Expected      bool          // it is configured and was never heard
	// Former is its incarnation before this one, as far as it was heard; 0 for none.
	Former wire.Incarnation
	// SecondPathAt is when its last message came by the second path; 0 for never. SecondPathOnly says that none has come by
	// the first: such a board may not live on it.
	SecondPathAt   clock.Instant
	SecondPathOnly bool
}

// newest has the sequence number of the newest message by the mark of the key that verified it. The two keys that a
// board accepts differ in their marks, so what one of them has told can be forgotten alone, see [Roster.ForgetKey].
type newest [2]wire.Sequence

// Rank returns the peer's rank.
func (p *Peer) Rank() Rank {
	return Rank{Grade: p.Grade, Priority: p.Priority, ID: p.ID, Score: p.Score}
}

// Live reports whether the peer has been heard lately.
func (p *Peer) Live(now clock.Instant) bool {
	every := max(p.HelloInterval, HelloFloor)
	return !p.Gone && !p.Expected && !p.SecondPathOnly && now-p.LastHeard < HelloLosses*every
}

// eligible reports whether a peer could lead now, without the one that is
// excluded (the leader under suspicion, usually).
func (p *Peer) eligible(now clock.Instant, excluded wire.ID) bool {
	return p.ID != excluded && p.Live(now) && p.Rank().Eligible()
}

// Follow enters what a HELLO says, received by the board self.
func (p *Peer) Follow(now clock.Instant, self wire.ID, hello *wire.Hello) {
	p.Following = hello.Following
	if p.Following == self {
		p.followed, p.followedAt = true, now
	}
	p.HelloInterval = hello.Interval
	p.StartedAt = now - hello.Age
	p.Name = hello.Name
	p.NoMulticast = hello.NoMulticast
}

// Newest is the sequence number of the peer's newest message, whichever key has verified it.
func (p *Peer) Newest() wire.Sequence { return max(p.newest[0], p.newest[1]) }

// HelloLosses is how many HELLOs in a row may be lost before a peer counts as
// dead. At 40 % loss five in a row are lost once in a hundred times.
const HelloLosses = 5

// HelloFloor is the shortest time between two HELLOs of a board, and helloShare
// how much is added per board: all HELLOs together stay at 8 packets a second.
const (
	HelloFloor = time.Second
	helloShare = 125 * time.Millisecond
)

// HelloInterval is how often each board says HELLO in a group of so many.
func HelloInterval(boards int) time.Duration {
	return max(HelloFloor, time.Duration(boards)*helloShare)
}

// Roster is what a board has learned of the others, ordered by id. It is
// learned, never configured, and holds at most wire.MaxBoards peers.
type Roster struct {
	peers []Peer
	order Order
}

// New returns an empty roster of boards that are as fit in that order; nil is that of most algorithms.
func New(order Order) Roster {
	if order == nil {
		order = byPriority
	}
	return Roster{order: order}
}

// Before reports whether the rank a comes before b: a board that may lead before one that may not,
// then the fitter one, then as the order has it.
func (r *Roster) Before(a, b Rank) bool {
	switch {
	case a.Eligible() != b.Eligible():
		return a.Eligible()
	case a.Grade != b.Grade:
		return a.Grade < b.Grade
	default:
		return r.order(a, b)
	}
}

func (r *Roster) index(id wire.ID) (int, bool) {
	return slices.BinarySearchFunc(r.peers, id, func(p Peer, id wire.ID) int { return cmp.Compare(p.ID, id) })
}

// Peer returns the peer with that id, or nil. The pointer is good until the
// roster learns of another board.
func (r *Roster) Peer(id wire.ID) *Peer {
	if i, ok := r.index(id); ok {
		return &r.peers[i]
	}
	return nil
}

// Heard enters what a message's header tells. It returns nil when the roster is
// full of live boards. Whether a board lives is known by the first path alone.
func (r *Roster) Heard(now clock.Instant, h *wire.Header, bySecondPath bool) *Peer {
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
		*p = Peer{ID: h.Sender, Incarnation: h.Incarnation, Former: p.Incarnation, Name: p.Name, SecondPathOnly: true}
	}
	p.Priority, p.Grade = h.Priority, h.Grade
	p.Leading = h.Leading
	p.newest[h.Key.Mark()] = h.Sequence
	if bySecondPath {
		p.SecondPathAt = now
		return p
	}
	p.LastHeard, p.SecondPathOnly = now, false
	p.Gone, p.Left = false, false
	return p
}

// Expect enters a board that was never heard. It counts as dead until it is.
func (r *Roster) Expect(id wire.ID, priority uint8) {
	i, ok := r.index(id)
	if !ok && len(r.peers) < wire.MaxBoards-1 {
		r.peers = slices.Insert(r.peers, i, Peer{ID: id, Priority: priority, Expected: true})
	}
}

// forget drops the dead peer that has been silent for longest, to make room.
func (r *Roster) forget(now clock.Instant) bool {
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
func (r *Roster) DeclareDead(id wire.ID) {
	if p := r.Peer(id); p != nil {
		p.Gone = true
	}
}

// Leaves takes a peer for dead that has said that it leaves.
func (r *Roster) Leaves(id wire.ID) {
	r.DeclareDead(id)
	if p := r.Peer(id); p != nil {
		p.Left = true
	}
}

// first returns the first in rank of the peers that satisfy a condition, or nil.
func (r *Roster) first(holds func(*Peer) bool) (first *Peer) {
	for i := range r.peers {
		if p := &r.peers[i]; holds(p) && (first == nil || r.Before(p.Rank(), first.Rank())) {
			first = p
		}
	}
	return first
}

// count counts the peers that satisfy a condition.
func (r *Roster) count(holds func(*Peer) bool) (n int) {
	for i := range r.peers {
		if holds(&r.peers[i]) {
			n++
		}
	}
	return n
}

// Heir returns the first of the live peers that may lead, other than excluded.
func (r *Roster) Heir(now clock.Instant, excluded wire.ID) (heir wire.ID, ok bool) {
	if p := r.first(func(p *Peer) bool { return p.eligible(now, excluded) }); p != nil {
		return p.ID, true
	}
	return wire.Nobody, false
}

// CountAbove counts the live peers, other than excluded, that outrank rank and may
// lead. It is a board's place in the line of succession: 0 is the heir.
func (r *Roster) CountAbove(now clock.Instant, rank Rank, excluded wire.ID) int {
	return r.count(func(p *Peer) bool { return p.eligible(now, excluded) && r.Before(p.Rank(), rank) })
}

// Which returns the ids of the peers that satisfy a condition, in their order,
// whether they live or not. It is never nil.
func (r *Roster) Which(holds func(*Peer) bool) []wire.ID {
	ids := make([]wire.ID, 0, len(r.peers))
	for i := range r.peers {
		if holds(&r.peers[i]) {
			ids = append(ids, r.peers[i].ID)
		}
	}
	return ids
}

// All returns the ids of all peers, whether they live or not.
func (r *Roster) All() []wire.ID { return r.Which(func(*Peer) bool { return true }) }

// LosesMulticast reports whether a live peer says that it gets no multicast.
func (r *Roster) LosesMulticast(now clock.Instant) bool {
	return r.count(func(p *Peer) bool { return p.NoMulticast && p.Live(now) }) > 0
}

// HeardBesides reports whether a peer other than one was ever heard, by either path.
func (r *Roster) HeardBesides(one wire.ID) bool {
	return r.count(func(p *Peer) bool { return p.ID != one && !p.Expected }) > 0
}

// Followed reports whether a live peer other than except says that it follows leader.
func (r *Roster) Followed(now clock.Instant, leader, except wire.ID) bool {
	return r.count(func(p *Peer) bool { return p.ID != except && p.Following == leader && p.Live(now) }) > 0
}

// Reach counts the peers that have said within that time that they follow this board.
func (r *Roster) Reach(now clock.Instant, within time.Duration) int {
	return r.count(func(p *Peer) bool { return p.followed && now-p.followedAt <= within })
}

// Fitter returns the first in rank of the live peers whose grade is better than that, or nil.
func (r *Roster) Fitter(now clock.Instant, grade wire.Grade) *Peer {
	return r.first(func(p *Peer) bool { return p.Grade < grade && p.eligible(now, wire.Nobody) })
}

// NextHello returns when the next HELLOs of all live peers should have come, and how many peers live.
func (r *Roster) NextHello(now clock.Instant) (due clock.Instant, live int) {
	for i := range r.peers {
		if p := &r.peers[i]; p.Live(now) {
			due = max(due, p.LastHeard+max(p.HelloInterval, HelloFloor))
			live++
		}
	}
	return due, live
}

// LiveWithHigherID counts the live peers, other than excluded, whose id is higher than that one.
func (r *Roster) LiveWithHigherID(now clock.Instant, id, excluded wire.ID) int {
	return r.count(func(p *Peer) bool { return p.ID > id && p.ID != excluded && p.Live(now) })
}

// ForgetKey forgets the sequence numbers of all messages that were verified with a key of that mark.
func (r *Roster) ForgetKey(mark uint8) {
	for i := range r.peers {
		r.peers[i].newest[mark] = 0
	}
}

// Live counts the live peers.
func (r *Roster) Live(now clock.Instant) int {
	return r.count(func(p *Peer) bool { return p.Live(now) })
}

// Peers returns copies of those that have been heard, ordered by id.
func (r *Roster) Peers() []Peer {
	return slices.DeleteFunc(slices.Clone(r.peers), func(p Peer) bool { return p.Expected })
}

// Order reports whether the rank a comes before b.
type Order func(a, b Rank) bool

// Rank is what boards are ordered by, see [Roster.Before].
type Rank struct {
	// Grade is how fit the board is. The fitter one comes first in all algorithms.
	Grade    wire.Grade
	Priority uint8
	ID       wire.ID
	// Score is what the algorithm score compares, and no other.
	Score uint32
}

// byPriority is the order of most algorithms: the higher priority, then the higher id.
func byPriority(a, b Rank) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.ID > b.ID
}

// Eligible reports whether a board of this rank may lead: priority 0 says never.
func (r Rank) Eligible() bool { return r.Priority > 0 }

func (r Rank) String() string { return fmt.Sprintf("%d/%s", r.Priority, r.ID) }

// LearnScore enters the score that a message tells of its sender.
func (p *Peer) LearnScore(m *wire.Message) {
	switch m.Type {
	case wire.TypeHello:
		p.Score = m.Hello.Score
	case wire.TypeElection:
		p.Score = m.Election.Score
	case wire.TypeCoordinator:
		if m.Coordinator.Coordinator != m.Sender {
			return
		}
		p.Score = m.Coordinator.Score
	default:
		return
	}
	p.ScoreKnown = true
}
