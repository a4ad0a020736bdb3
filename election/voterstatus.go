package election

import "topdog/wire"

// VoterStatus is what a board can tell people of one voter.
type VoterStatus struct {
	ID wire.ID
	// Supports says that the voter has promised to support this board, until later than now.
	// Only a leader, or a board that asks for the lead, has promises.
	Supports bool
	Twice    bool // it is there in two processes, so it does not count
}

// Voters returns the voters, ordered by id.
func (s *strict) Voters() (all []VoterStatus) {
	for i := range s.support.voters {
		v := &s.support.voters[i]
		twice := !v.counts(s.Now())
		all = append(all, VoterStatus{ID: v.id, Supports: !twice && v.until > s.Now(), Twice: twice})
	}
	return all
}

// MajorityUnheard reports whether this leader's lease is over, since the majority was not heard.
func (s *strict) MajorityUnheard() bool { return s.fence.closed }
