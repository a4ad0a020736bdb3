package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Delay is a distribution of times that datagrams take. The zero one is none.
// Draws are never negative, and never more than a minute: who waits that long
// has lost the datagram. Randomness is used only if there is a choice, so that a
// seed means the same with every constant delay.
type Delay struct {
	draw func(rng *rand.Rand) float64 // in nanoseconds
}

const maxDelay = time.Minute

// Constant makes every datagram take d.
func Constant(d time.Duration) Delay {
	return Delay{func(*rand.Rand) float64 { return float64(d) }}
}

// Uniform makes a datagram take from to until, every time in between being as likely.
func Uniform(from, until time.Duration) Delay {
	if until <= from {
		return Constant(from)
	}
	return Delay{func(rng *rand.Rand) float64 { return float64(from + time.Duration(rng.Int64N(int64(until-from)))) }}
}

// Normal makes it take mean on average, with that standard deviation. What would
// be negative takes no time.
func Normal(mean, deviation time.Duration) Delay {
	return Delay{func(rng *rand.Rand) float64 { return float64(mean) + rng.NormFloat64()*float64(deviation) }}
}

// LogNormal makes half of the datagrams take less than median, and some very much
// more: the logarithm is normal with the standard deviation sigma. Wireless
// networks look like this.
func LogNormal(median time.Duration, sigma float64) Delay {
	return Delay{func(rng *rand.Rand) float64 { return float64(median) * math.Exp(rng.NormFloat64()*sigma) }}
}

// Exponential makes a datagram take least, and on top of it a time that is mean
// on average: a wire with a queue before it.
func Exponential(least, mean time.Duration) Delay {
	return Delay{func(rng *rand.Rand) float64 { return float64(least) + rng.ExpFloat64()*float64(mean) }}
}

func (d Delay) sample(rng *rand.Rand) time.Duration {
	if d.draw == nil {
		return 0
	}
	return time.Duration(min(max(d.draw(rng), 0), float64(maxDelay)))
}

// DelayForms is what ParseDelay understands, for people.
const DelayForms = "200us, uniform:100us-3ms, normal:1ms,200us (mean, deviation), " +
	"lognormal:1ms,0.5 (median, sigma) or exp:200us (mean; exp:100us+200us adds a least time)"

// ParseDelay reads a distribution in one of DelayForms.
func ParseDelay(text string) (Delay, error) {
	name, args, found := strings.Cut(text, ":")
	if !found {
		name, args = "constant", text
	}
	d, err := parseDelay(name, args)
	if err != nil {
		return Delay{}, fmt.Errorf("%q: %w; there are: %s", text, err, DelayForms)
	}
	return d, nil
}

func parseDelay(name, args string) (d Delay, err error) {
	between, known := map[string]string{"constant": "", "uniform": "-", "normal": ",", "lognormal": ",", "exp": "+"}[name]
	first, second, two := args, "", false
	switch {
	case !known:
		return d, fmt.Errorf("there is no distribution %q", name)
	case between != "":
		first, second, two = strings.Cut(args, between)
	}
	switch {
	case name == "exp" && !two: // it may have no least time
		first, second = "0s", first
	case between != "" && !two:
		return d, fmt.Errorf("%s needs two numbers with %q between them", name, between)
	}
	a, err := parseTime(first)
	if err != nil || name == "constant" {
		return Constant(a), err
	}
	if name == "lognormal" {
		sigma, err := strconv.ParseFloat(second, 64)
		if err != nil || !(sigma >= 0 && sigma <= 10) {
			return d, fmt.Errorf("sigma must be a number from 0 to 10, is %q", second)
		}
		return LogNormal(a, sigma), nil
	}
	b, err := parseTime(second)
	if err == nil && name == "uniform" && b < a {
		err = fmt.Errorf("%v comes before %v", b, a)
	}
	return map[string]func(a, b time.Duration) Delay{"uniform": Uniform, "normal": Normal, "exp": Exponential}[name](a, b), err
}

func parseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no length of time, such as 200us or 3ms", s)
	case d < 0 || d > maxDelay:
		return 0, fmt.Errorf("a datagram takes 0 to %v, not %v", maxDelay, d)
	}
	return d, nil
}
