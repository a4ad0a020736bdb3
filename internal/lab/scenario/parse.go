package scenario

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// parseReorder reads how often, and by how much, datagrams are held back: 10%:5ms.
func parseReorder(s string) (chance float64, holdBack time.Duration, err error) {
	first, second, found := strings.Cut(s, ":")
	if !found {
		return 0, 0, fmt.Errorf("%q does not say by how much; write it like 10%%:5ms", s)
	}
	if chance, err = scene.ReadShare(first); err != nil {
		return 0, 0, err
	}
	holdBack, err = scene.ReadTime(second)
	return chance, holdBack, err
}

// Drift is how wrong the boards' clocks go.
type Drift struct {
	within int // ppm, each board's own drawn from −within to within
	boards map[wire.ID]int
}

// parseDrift reads how wrong clocks go: 50ppm for all of them, each drawn by the
// seed, or 3=+200ppm,5=-50ppm.
func parseDrift(s string) (d Drift, err error) {
	if !strings.Contains(s, "=") {
		d.within, err = parsePPM(s)
		d.within = max(d.within, -d.within)
		return d, err
	}
	d.boards = make(map[wire.ID]int)
	for part := range strings.SplitSeq(s, ",") {
		board, ppm, found := strings.Cut(part, "=")
		ids, err := parseIDs(board)
		if err != nil {
			return Drift{}, err
		}
		if !found {
			return Drift{}, fmt.Errorf("%q: write it like 3=+200ppm,5=-50ppm", s)
		}
		if _, again := d.boards[ids[0]]; again {
			return Drift{}, fmt.Errorf("%q: board %v has two clocks", s, ids[0])
		}
		if d.boards[ids[0]], err = parsePPM(ppm); err != nil {
			return Drift{}, err
		}
	}
	return d, nil
}

func parsePPM(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(s, "ppm"))
	if err != nil || n > sim.MaxDrift || n < -sim.MaxDrift {
		return 0, fmt.Errorf("%q is no drift of at most %dppm, such as 50ppm", s, sim.MaxDrift)
	}
	return n, nil
}

// clock returns a board's clock. Each has an origin of its own, since those of real boards
// never agree: it is how long ago the board was switched on.
func (d Drift) clock(id wire.ID, rng *rand.Rand) sim.Clock {
	c := sim.Clock{Origin: election.Instant(rng.Int64N(int64(1000 * time.Hour)))}
	if d.within > 0 {
		c.PPM = rng.IntN(2*d.within+1) - d.within
	}
	if ppm, ok := d.boards[id]; ok {
		c.PPM = ppm
	}
	return c
}
