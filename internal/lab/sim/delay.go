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

// shapes are all families: how one is written, name:a and then what is between a and b, and how a time is drawn.
// Randomness is used only if there is a choice, so that a seed means the same with every constant delay.
var shapes = [...]struct {
	name, between string
	draw          func(d Delay, rng *rand.Rand) float64
}{
	shapeNone:     {draw: func(Delay, *rand.Rand) float64 { return 0 }},
	shapeConstant: {"constant", "", func(d Delay, _ *rand.Rand) float64 { return float64(d.a) }},
	shapeUniform: {"uniform", "-", func(d Delay, rng *rand.Rand) float64 {
		if d.b <= d.a {
			return float64(d.a)
		}
		return float64(d.a + time.Duration(rng.Int64N(int64(d.b-d.a))))
	}},
	shapeNormal: {"normal", ",", func(d Delay, rng *rand.Rand) float64 {
		return float64(d.a) + rng.NormFloat64()*float64(d.b)
	}},
	shapeLogNormal: {"lognormal", ",", func(d Delay, rng *rand.Rand) float64 {
		return float64(d.a) * math.Exp(rng.NormFloat64()*d.sigma)
	}},
	shapeExponential: {"exp", "+", func(d Delay, rng *rand.Rand) float64 {
		return float64(d.a) + rng.ExpFloat64()*float64(d.b)
	}},
}

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

func (d Delay) draw(rng *rand.Rand) time.Duration {
	return time.Duration(min(max(shapes[d.shape].draw(d, rng), 0), float64(maxDelay)))
}

// constant reports whether all datagrams take equally long.
func (d Delay) constant() bool { return d.shape == shapeNone || d.shape == shapeConstant }

// DelayForms is what ParseDelay understands, for people.
const DelayForms = "200us, uniform:100us-3ms, normal:1ms,200us (mean, deviation), " +
	"lognormal:1ms,0.5 (median, sigma) or exp:200us (mean; exp:100us+200us adds a least time)"

// String writes the distribution as ParseDelay reads it.
func (d Delay) String() string {
	s := shapes[d.shape]
	switch {
	case d.shape == shapeNone:
		return "none"
	case d.shape == shapeConstant:
		return d.a.String()
	case d.shape == shapeLogNormal:
		return fmt.Sprintf("%s:%v%s%v", s.name, d.a, s.between, d.sigma)
	case d.shape == shapeExponential && d.a == 0:
		return fmt.Sprintf("%s:%v", s.name, d.b)
	default:
		return fmt.Sprintf("%s:%v%s%v", s.name, d.a, s.between, d.b)
	}
}

// ParseDelay reads a distribution in one of DelayForms.
func ParseDelay(text string) (Delay, error) {
	name, args, found := strings.Cut(text, ":")
	if !found {
		name, args = "constant", text
	}
	err := fmt.Errorf("there is no distribution %q", name)
	for i := shapeConstant; int(i) < len(shapes); i++ {
		if shapes[i].name != name {
			continue
		}
		d := Delay{shape: i}
		if err = d.parse(args); err == nil {
			return d, nil
		}
	}
	return Delay{}, fmt.Errorf("%q: %w; there are: %s", text, err, DelayForms)
}

// parse reads the numbers of a distribution. An exponential one may have no least time.
func (d *Delay) parse(args string) (err error) {
	s := shapes[d.shape]
	first, second, two := args, "", false
	if s.between != "" {
		first, second, two = strings.Cut(args, s.between)
	}
	if d.shape == shapeExponential && !two {
		first, second, two = "0s", first, true
	}
	if s.between != "" && !two {
		return fmt.Errorf("%s needs two numbers with %q between them", s.name, s.between)
	}
	if d.a, err = parseTime(first); err != nil || !two {
		return err
	}
	if d.shape == shapeLogNormal {
		if d.sigma, err = strconv.ParseFloat(second, 64); err != nil || !(d.sigma >= 0 && d.sigma <= 10) {
			return fmt.Errorf("sigma must be a number from 0 to 10, is %q", second)
		}
		return nil
	}
	if d.b, err = parseTime(second); err == nil && d.shape == shapeUniform && d.b < d.a {
		err = fmt.Errorf("%v comes before %v", d.b, d.a)
	}
	return err
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
