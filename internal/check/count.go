package check

// state is what the results of a check come to.
type state uint8

const (
	unknown state = iota
	passing
	failing
)

// counter counts results until they are enough to change the state.
type counter struct {
	state state
	run   int // results in a row that speak against the state
}

// count takes one result, and reports whether the state has changed. The first one decides at once. So does
// a failure that is a fact.
func (c *counter) count(passed, fact bool, rise, fall int) (changed bool) {
	next, needed := failing, fall
	if passed {
		next, needed = passing, rise
	}
	if c.state == unknown || fact && !passed {
		needed = 1
	}
	if c.state == next {
		c.run = 0
		return false
	}
	if c.run++; c.run < needed {
		return false
	}
	c.state, c.run = next, 0
	return true
}

// settled reports whether the last results agree with the state.
func (c *counter) settled() bool { return c.run == 0 }
