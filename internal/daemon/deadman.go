package daemon

import (
	"context"

	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// deadman is the dead man's switch. When the lease of this daemon ends, the holder releases the address, and sends the
// RESIGN that was signed for it. A leader extends its lease with each heartbeat that it sends.
type deadman struct {
	shared
	group  *group
	holder Deadman // nil if there is none

	// What the holder was given, and what it was made of.
	resign   wire.Message // with its sequence
	revision int          // of the group
	past     bool         // it is out of date, since the address was released: the holder will not send it
}

// start begins to use the holder. It calls lost, in the loop, if the holder is lost.
func (s *deadman) start(lost func()) {
	if s.platform.StartDeadman == nil {
		return
	}
	holder := s.platform.StartDeadman()
	s.holder = holder
	s.tasks.start(func(ctx context.Context) error {
		select {
		case <-holder.Lost():
			s.tasks.post(lost)
		case <-ctx.Done():
		}
		return nil
	})
}

// close ends the use of the holder. If the address could not be released, the holder goes on trying.
func (s *deadman) close(unreleased bool) {
	switch {
	case s.holder == nil:
	case unreleased:
		s.reporter.failed("leave the address to the holder", s.holder.Abandon())
	default:
		s.reporter.failed("close the holder", s.holder.Close())
	}
}

// update gives the holder a new RESIGN if the one that it has is out of date. If that fails, the leader goes on all the same.
func (s *deadman) update(resign wire.Message) {
	if s.holder == nil || !s.past && resign.Term == s.resign.Term && resign.Grade == s.resign.Grade && resign.Resign == s.resign.Resign &&
		!s.group.presignDue(s.resign.Sequence) && s.group.revision() == s.revision {
		return
	}
	resign.Sequence = s.group.presignSequence()
	var prepared netio.PreparedResign
	if resign.Resign.Successor != wire.Nobody {
		datagram, err := s.group.presign(resign)
		if err != nil {
			s.reporter.log.Errorf("sign the RESIGN in advance: %v", err)
			return
		}
		prepared = netio.PreparedResign{Datagram: datagram, To: s.group.destinations()}
	}
	if err := s.holder.Prepare(prepared); err != nil {
		s.reporter.warn(console.ProblemDeadmanOutdated, err.Error())
		return
	}
	s.resign, s.revision, s.past = resign, s.group.revision(), false
}

// named is the successor that the holder's RESIGN names; Nobody if it has none to send.
func (s *deadman) named() wire.ID { return s.resign.Resign.Successor }

// released is called when this daemon has released the address itself.
func (s *deadman) released() { s.past = true }

// acted is called when the lease was ended by the holder.
func (s *deadman) acted() {
	// The RESIGN was sent, or is about to be. Whatever this board says from now on must have a later sequence.
	s.group.skipTo(s.resign.Sequence)
	s.reporter.log.Warn("this daemon did not run when its next heartbeat was due: its dead man's switch has released the address")
}

// status fills in what topdog status shows of it.
func (s *deadman) status(status *console.Status) {
	d := console.Defence{Kind: console.DefenceSwitch, On: s.holder != nil, Text: "not on this machine"}
	if d.On {
		d.Text = "a process of its own releases the address, and says so, when this daemon is killed or frozen"
	}
	status.Defences = append(status.Defences, d)
}
