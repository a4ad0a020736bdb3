package election_test

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/wire"
)

// The owner of a core tells it what happens and when, and carries out what it answers. This
// board is alone, so it finds no leader, has the address probed, and leads.
func Example() {
	core, err := election.New(election.Config{
		ID: 1, Incarnation: 1, Name: "pi1", Priority: election.DefaultPriority,
		Interval: election.DefaultInterval, Algorithm: wire.AlgorithmHeir,
	}, election.Heir, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	var now election.Instant // of the owner's clock
	var carryOut func([]election.Effect)
	carryOut = func(effects []election.Effect) {
		probe := false
		for _, e := range effects { // good until the next call of the core
			switch e.Kind {
			case election.EffectSend:
				// Here e.Message goes out to e.To, or to the whole group.
			case election.EffectChange:
				fmt.Printf("%-5v  %v -> %v: %v\n", now, e.Change.From, e.Change.To, e.Change.Reason)
			case election.EffectAcquire:
				fmt.Printf("%-5v  acquire the address\n", now)
			case election.EffectProbe:
				fmt.Printf("%-5v  probe the address\n", now)
				probe = true
			}
		}
		if probe {
			now += 20 * time.Millisecond // nobody has answered the probe by then
			carryOut(core.Probed(now, false))
		}
	}
	carryOut(core.Link(now, true))
	for core.Role() != election.Leader {
		now, _ = core.Deadline()
		carryOut(core.Wake(now))
	}
	// Output:
	// 0s     isolated -> listener: the link came up
	// 250ms  listener -> candidate: nobody was leading
	// 250ms  probe the address
	// 280ms  candidate -> leader: nobody was leading
	// 280ms  acquire the address
}
