package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// shape is a family of distributions.
type shape uint8

const (
	shapeNone shape = iota
	shapeConstant
	shapeUniform
	shapeNormal
	shapeLogNormal
	shapeExponential
)

// Delay is a distribution of times that datagrams take. The zero one is none.
// Draws are never negative, and never more than a minute: who waits that long
// has lost the datagram.
type Delay struct {
	shape shape
	a, b  time.Duration // what they mean depends on the shape
	sigma float64       // of a log-normal one
}

const maxDelay = time.Minute

// Constant makes every datagram take d.
func Constant(d time.Duration) Delay { return Delay{shape: shapeConstant, a: d} }

// Uniform makes a datagram take from to until, every time in between being as likely.
func Uniform(from, until time.Duration) Delay { return Delay{shape: shapeUniform, a: from, b: until} }

// Normal makes it take mean on average, with that standard deviation. What would
// be negative takes no time.
func Normal(mean, deviation time.Duration) Delay {
	return Delay{shape: shapeNormal, a: mean, b: deviation}
}

// LogNormal makes half of the datagrams take less than median, and some very much
// more: the logarithm is normal with the standard deviation sigma. Wireless
// networks look like this.
func LogNormal(median time.Duration, sigma float64) Delay {
	return Delay{shape: shapeLogNormal, a: median, sigma: sigma}
}

// Exponential makes a datagram take least, and on top of it a time that is mean
// on average: a wire with a queue before it.
func Exponential(least, mean time.Duration) Delay {
	return Delay{shape: shapeExponential, a: least, b: mean}
}

// draw uses randomness only if there is a choice, so that a seed means the same
// with every constant delay.
func (d Delay) draw(rng *rand.Rand) time.Duration {
	var t float64
	switch d.shape {
	case shapeConstant:
		return d.a
	case shapeUniform:
		if d.b <= d.a {
			return d.a
		}
		return d.a + time.Duration(rng.Int64N(int64(d.b-d.a)))
	case shapeNormal:
		t = float64(d.a) + rng.NormFloat64()*float64(d.b)
	case shapeLogNormal:
		t = float64(d.a) * math.Exp(rng.NormFloat64()*d.sigma)
	case shapeExponential:
		t = float64(d.a) + rng.ExpFloat64()*float64(d.b)
	default:
		return 0
	}
	return time.Duration(min(max(t, 0), float64(maxDelay)))
}

// constant reports whether all datagrams take equally long.
func (d Delay) constant() bool { return d.shape == shapeNone || d.shape == shapeConstant }

// DelayForms is what ParseDelay understands, for people.
const DelayForms = "200us, uniform:100us-3ms, normal:1ms,200us (mean, deviation), " +
	"lognormal:1ms,0.5 (median, sigma) or exp:200us (mean; exp:100us+200us adds a least time)"

// String writes the distribution as ParseDelay reads it.
func (d Delay) String() string {
	switch d.shape {
	case shapeConstant:
		return d.a.String()
	case shapeUniform:
		return fmt.Sprintf("uniform:%v-%v", d.a, d.b)
	case shapeNormal:
		return fmt.Sprintf("normal:%v,%v", d.a, d.b)
	case shapeLogNormal:
		return fmt.Sprintf("lognormal:%v,%v", d.a, d.sigma)
	case shapeExponential:
		if d.a == 0 {
			return fmt.Sprintf("exp:%v", d.b)
		}
		return fmt.Sprintf("exp:%v+%v", d.a, d.b)
	default:
		return "none"
	}
}

// ParseDelay reads a distribution in one of DelayForms.
func ParseDelay(s string) (Delay, error) {
	kind, args, found := strings.Cut(s, ":")
	if !found {
		kind, args = "constant", s
	}
	d, err := parseDelay(kind, args)
	if err != nil {
		return Delay{}, fmt.Errorf("%q: %w; there are: %s", s, err, DelayForms)
	}
	return d, nil
}

func parseDelay(kind, args string) (d Delay, err error) {
	separator := map[string]string{"constant": "", "uniform": "-", "normal": ",", "lognormal": ",", "exp": "+"}
	sep, ok := separator[kind]
	if !ok {
		return d, fmt.Errorf("there is no distribution %q", kind)
	}
	first, second, two := args, "", false
	if sep != "" {
		first, second, two = strings.Cut(args, sep)
	}
	if two == (kind == "constant") && kind != "exp" {
		return d, fmt.Errorf("%s needs two numbers with %q between them", kind, sep)
	}
	if d.a, err = parseTime(first); err != nil {
		return d, err
	}
	switch {
	case kind == "lognormal":
		if d.sigma, err = strconv.ParseFloat(second, 64); err != nil || !(d.sigma >= 0 && d.sigma <= 10) {
			return d, fmt.Errorf("sigma must be a number from 0 to 10, is %q", second)
		}
	case two:
		if d.b, err = parseTime(second); err != nil {
			return d, err
		}
	}
	switch kind {
	case "constant":
		d.shape = shapeConstant
	case "uniform":
		d.shape = shapeUniform
		if d.b < d.a {
			return d, fmt.Errorf("%v comes before %v", d.b, d.a)
		}
	case "normal":
		d.shape = shapeNormal
	case "lognormal":
		d.shape = shapeLogNormal
	case "exp":
		d.shape = shapeExponential
		if !two {
			d.a, d.b = 0, d.a
		}
	}
	return d, nil
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
