package soak

import (
	"fmt"
	"net/netip"
	"time"

	"topdog/election"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
)

// Boards with a second path hear each other while the first is cut, pulled or split. That is no reason for two holders then,
// on whichever side of the LAN.

// ofSecondPath are the faults of a second path. None of them costs anything: the address is not on it.
var ofSecondPath = []kind{
	{key: "pull-second", title: "the cable of the second path is pulled", lasts: scene.Range{Least: 300 * ms, Most: 5000 * ms},
		lines: "IT pull-second\nwait LASTS\nIT plug-second", cost: scene.Cost{Outage: scene.Unnoticed}},
	{key: "second-flaps", title: "the second path of a board flaps", lasts: scene.Range{Least: 1000 * ms, Most: 5000 * ms},
		lines: repeated("IT pull-second", "20ms..300ms", "IT plug-second"), cost: scene.Cost{Outage: scene.Unnoticed}},
	{key: "second-flaps-all", title: "the second path of all boards flaps", lasts: scene.Range{Least: 1000 * ms, Most: 5000 * ms}, all: true,
		lines: repeated("all pull-second", "20ms..300ms", "all plug-second"), cost: scene.Cost{Outage: scene.Unnoticed}},
}

// withSecondPath are kinds of faults as boards with a second path are to bear them, and those of that path.
func withSecondPath(kinds []kind) (all []kind) {
	for _, k := range kinds {
		k.cost.Two = 0
		if k.key == "split" || k.key == "one-way" {
			k.cost.Lasting = true // the address stays, where some clients cannot reach it
		}
		all = append(all, k)
	}
	return append(all, ofSecondPath...)
}

// Do pulls the cable of the second path of boards, or puts it back: lines that only a soak has.
func (s *session) Do(boards []int, _ time.Duration, words, _ []string) (known bool, err error) {
	change := map[string]func(*cluster.Topdog) error{
		"pull-second": func(b *cluster.Topdog) error { return b.PullSecond() },
		"plug-second": func(b *cluster.Topdog) error { return b.PlugSecond() },
	}[words[0]]
	if change == nil || !s.second {
		return false, nil
	}
	for _, n := range boards {
		if err := change(s.Boards[n-1]); err != nil {
			return true, err
		}
	}
	return true, nil
}

// awaitSecondPath waits until all boards hear their leader by the second path again, if they have one: a trial must not find a
// path dead that the one before has cut.
func (s *session) awaitSecondPath() error {
	const ofLate = election.SecondPathEvery + 200*ms // a heartbeat may be under way
	if !s.second || s.v.lost {
		return nil
	}
	return cluster.Until("the boards hear their leader by the second path", func() string {
		for _, b := range s.Boards {
			switch status, err := b.Status(); {
			case err != nil:
				return err.Error()
			case !cluster.HearsLeaderBySecondPath(status, ofLate):
				return fmt.Sprintf("%s does not", b)
			}
		}
		return ""
	})
}

// taken is what each place has seen; with a second path, that of all together.
func (s *session) taken() (all []map[netip.Addr][]observe.Span) {
	for _, p := range s.places {
		taken := p.take()
		if len(all) == 0 || !s.second {
			all = append(all, taken)
			continue
		}
		for address, spans := range taken {
			all[0][address] = append(all[0][address], spans...)
		}
	}
	return all
}
