package daemon

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/election/record"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/internal/lab/replay"
	"topdog/wire"
)

// playAgain plays what a board has recorded, and wants the same. So every test on a fake LAN is one of the recording.
func (b *fakeBoard) playAgain() {
	b.lan.t.Helper()
	if b.core == nil {
		return
	}
	text := string(b.recording.Text())
	played, err := replay.Play(text)
	if err != nil {
		b.lan.t.Errorf("board %d: its recording cannot be played: %v", b.number, err)
		return
	}
	if played.Different > 0 {
		b.lan.t.Errorf("board %d: %d of %d steps that it has recorded differ, at first %s", b.number, played.Different, played.Steps, played.First)
	}
	if diff := cmp.Diff(stateOf(b.core.Core), stateOf(played.Core)); diff != "" {
		b.lan.t.Errorf("board %d is in another state in the end (-want +got):\n%s", b.number, diff)
	}
}

// stateOf returns the state of a core in lines, without what the next call sets anyway, and in any order of the entries of maps.
func stateOf(core *election.Core) []string {
	r := record.New()
	r.Of(core).HeardMulticast(0, wire.Nobody)
	text := regexp.MustCompile(` (now|wokelate)=\S+|(acked|notices)\.\d+`).ReplaceAllString(string(r.Text()), "$2")
	return slices.Sorted(strings.Lines(text))
}

// TestSceneOfATakeover has the heir of three boards record the death of its leader. Package replay plays this file.
func TestSceneOfATakeover(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		three.unplugged(true)
		pass(500 * time.Millisecond)
		l.wantHolders(2)
		three.unplugged(false)
		pass(time.Second)
		s, err := two.Scene(t.Context())
		assert.NoError(t, err)
		for _, want := range []string{"\n\tcandidate -> leader: ", "\n\ttake\n", "\n\tCOORDINATOR to all\n", `name="pi3"`} {
			if !strings.Contains(s.Text, want) {
				t.Errorf("there is no %q in the scene:\n%s", want, s.Text)
			}
		}
		if *golden.Update { // not two recordings are equal
			golden.Compare(t, "../lab/replay/testdata/takeover.txt", s.Text)
		}
	})
}

// A scene has no key, and says nothing of one.
func TestSceneHasNoKey(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.three()
		s, err := two.Scene(t.Context())
		assert.NoError(t, err)
		for _, secret := range []string{strings.Repeat("\a", wire.KeySize), strings.Repeat("07", wire.KeySize), two.group.codec.Keys().Signs.String(), "keys", "\x00"} {
			if strings.Contains(s.Text, secret) {
				t.Errorf("the scene has %q", secret)
			}
		}
	})
}
