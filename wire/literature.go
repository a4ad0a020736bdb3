package wire

// Halt stops other elections while one is held (the modified bully algorithm).
type Halt struct {
	Suspect ID
}

func (h *Halt) fields(c *cursor) { c.id(&h.Suspect) }

// Round is the body of START, ACK and COLLECT: the number of a round of the algorithm
// agents (Li, Zhao, Wang).
type Round struct {
	Number uint32
}

func (r *Round) fields(c *cursor) { c.u32(&r.Number) }

// OK is what the judge of a round says to all (Li, Zhao, Wang, phase 2). A board that is not
// trusted must begin the next round.
type OK struct {
	Round uint32
	Trust []ID // the trusted set, at most MaxBoards
}

func (o *OK) fields(c *cursor) {
	c.u32(&o.Round)
	c.ids("Trust", &o.Trust)
}

// Report carries a priority list (Li, Zhao, Wang, phase 3).
type Report struct {
	Round     uint32
	Timestamp uint32
	Standings []Standing // at most MaxBoards
}

// Standing is one entry of a REPORT.
type Standing struct {
	ID       ID
	Priority uint8
}

// standingSize is the length of an entry.
const standingSize = idSize + 1

func (r *Report) fields(c *cursor) {
	c.u32(&r.Round)
	c.u32(&r.Timestamp)
	if n := c.count("Standings", len(r.Standings), standingSize); c.reading {
		r.Standings = resized(r.Standings, n)
	}
	for i := range r.Standings {
		c.entry("Standings", i, &r.Standings[i].ID)
		c.u8(&r.Standings[i].Priority)
	}
}

// Leader announces the judge's verdict (Li, Zhao, Wang, phase 3).
type Leader struct {
	Leader    ID
	Timestamp uint32
}

func (l *Leader) fields(c *cursor) {
	c.board("Leader", &l.Leader)
	c.u32(&l.Timestamp)
}
