package election

import (
	"testing"
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// TestSilenceProvesNothing: a board that hears nothing at all claims nothing, however long
// that lasts. It asks every interval, and says that it may not claim. The first frame begins
// the questions anew, and when they are in vain it claims.
func TestSilenceProvesNothing(t *testing.T) {
	b := followerOf3(t, 200)
	b.deaf = true
	asked := b.sleep(time.Minute)
	if b.role != Candidate {
		t.Fatalf("the board is a %v", b.role)
	}
	last := asked[len(asked)-1]
	for i := len(asked) - 1; last.Kind != EffectSend; i-- {
		last = asked[i]
	}
	if n := sent(asked, wire.TypeElection); n < 1150 || n > 1250 || !last.Message.Election.NoClaim {
		t.Errorf("it has put %d questions, and the last one says %v", n, last.Message.Election.NoClaim)
	}
	b.deaf = false
	asked = b.Evidence(b.clock)
	if b.role != Candidate || b.asking.round != 1 {
		t.Errorf("the board is a %v in round %d of its questions: %q", b.role, b.asking.round, described(asked))
	}
	if b.sleep(b.detector.Questions().Duration() + b.detector.RoundTripBound()); b.role != Leader {
		t.Errorf("after the questions the board is a %v", b.role)
	}
}

// TestAddressAnswers: a candidate does not claim an address that answers, tells people why,
// and claims it when it has fallen silent. What was asked before the lease ended counts for
// nothing: until then the address may answer.
func TestAddressAnswers(t *testing.T) {
	b := followerOf3(t, 200)
	answers := func(d time.Duration) (notices []string) {
		for end := b.clock + d; ; {
			at, _ := b.Deadline()
			if at > end {
				b.clock = end
				return notices
			}
			b.clock = max(b.clock, at)
			for _, e := range b.witnessed(b.Wake(b.clock)) {
				if e.Kind == EffectAskLAN && e.To == 3 {
					for _, e := range b.AddressAnswered(b.clock, b.clock) {
						if e.Kind == EffectNotice {
							notices = append(notices, e.Notice.Kind.Identifier())
						}
					}
				}
			}
		}
	}
	notices := answers(10 * time.Second)
	if len(notices) != 2 || notices[0] != "address_answers" || notices[1] != "address_stays" {
		t.Errorf("people were told %q", notices)
	}
	if b.role != Candidate {
		t.Fatalf("the board is a %v", b.role)
	}
	b.AddressAnswered(b.clock, b.detector.Earliest()-silence.DefaultGrace(testInterval)/2)
	if b.sleep(testInterval + b.detector.RoundTripBound()); b.role != Leader {
		t.Errorf("the address does not answer any more, and the board is a %v", b.role)
	}
}
