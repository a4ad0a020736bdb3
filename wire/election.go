package wire

import (
	"fmt"
	"time"
)

// Election asks whether the suspect is alive, and announces that the sender is
// about to take over if nobody objects.
type Election struct {
	Suspect     ID          // the leader under suspicion, or Nobody at a cold start
	Incarnation Incarnation // the suspect's
	LastHeard   Sequence    // of the newest HEARTBEAT that the sender had from it
	Round       uint8       // counts repetitions, so that an answer can be matched to its question
	NoClaim     bool        // the sender may not claim yet: nothing shows that its port receives
	Score       uint32      // by which the algorithm score ranks the sender; else 0
}

func (e *Election) fields(c *cursor) {
	c.id(&e.Suspect)
	c.incarnation(&e.Incarnation)
	c.sequence(&e.LastHeard)
	c.u8(&e.Round)
	c.flag(&e.NoClaim)
	c.tail(e.Score != 0)
	c.u32(&e.Score)
}

// Answer objects to an ELECTION, with what the sender knows of the leader. It
// also answers a QUERY.
type Answer struct {
	Leader      ID            // Nobody if the sender knows none
	Incarnation Incarnation   // the leader's
	LastHeard   Sequence      // of the newest HEARTBEAT that the sender had from it
	Age         time.Duration // since that HEARTBEAT arrived; whole microseconds
	Round       uint8         // copied from the question
}

func (a *Answer) fields(c *cursor) {
	c.id(&a.Leader)
	c.incarnation(&a.Incarnation)
	c.sequence(&a.LastHeard)
	c.elapsed("Age", &a.Age, time.Microsecond)
	c.u8(&a.Round)
}

// Coordinator proclaims a new leader. Interval, Grace and Number are as in a HEARTBEAT,
// since it counts as the first one of that leader.
type Coordinator struct {
	Coordinator ID
	Interval    time.Duration
	Grace       time.Duration
	Number      uint8
	Score       uint32 // by which the algorithm score ranks the sender; else 0
	// Candidates are the boards that hold elections from now on, to the algorithm
	// candidates (Murshed and Allen); else none. At most MaxBoards.
	Candidates []ID
}

func (k *Coordinator) fields(c *cursor) {
	c.board("Coordinator", &k.Coordinator)
	c.interval("Interval", &k.Interval)
	c.grace(&k.Grace)
	c.u8(&k.Number)
	c.tail(k.Score != 0 || len(k.Candidates) > 0)
	c.u32(&k.Score)
	c.ids("Candidates", &k.Candidates)
}

// Query asks who leads (Kabashi et al., step 5), or asks the leader for a handover.
type Query struct {
	Purpose Purpose
	Round   uint8 // copied into the answer
}

// fields lets purposes through that this version does not know, so that a later
// version can ask for more: a board that does not understand a question does not answer it.
func (q *Query) fields(c *cursor) {
	c.u8((*uint8)(&q.Purpose))
	c.u8(&q.Round)
}

// Purpose is why a board sends a QUERY. Only append.
type Purpose uint8

// The purposes.
const (
	PurposeJoin     Purpose = 0 // who leads?
	PurposeHandover Purpose = 1 // I outrank you and want to lead: please resign to me
)

// Rival is what one of two leaders tells the other one, which it hears, or has replaced and looks for: how
// many boards follow it, and what it has decided. The leader of the lower term decides, and the other one obeys.
type Rival struct {
	Rival    ID // the leader that this is for
	Decision Decision
	// Reach is how many boards were heard following the sender since the younger one of
	// the two reigns began.
	Reach uint8
	// Age is for how long the sender has led; whole milliseconds.
	Age time.Duration
}

// fields lets decisions through that this version does not know: a board that does not
// understand one decides for itself.
func (r *Rival) fields(c *cursor) {
	c.board("Rival", &r.Rival)
	c.u8((*uint8)(&r.Decision))
	c.u8(&r.Reach)
	c.elapsed("Age", &r.Age, time.Millisecond)
}

// Decision is what one of two leaders has decided. Only append.
type Decision uint8

// The decisions.
const (
	DecisionOpen  Decision = 0 // none yet: tell me your reach
	DecisionYield Decision = 1 // the receiver releases the address, and follows the sender
)

func (d Decision) String() string {
	switch d {
	case DecisionOpen:
		return "open"
	case DecisionYield:
		return "yield"
	default:
		return fmt.Sprintf("decision %d", uint8(d))
	}
}
