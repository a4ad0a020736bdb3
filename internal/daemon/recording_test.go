package daemon

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/election/record"
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
