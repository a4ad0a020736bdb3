package console

import (
	"fmt"
	"math"
	"strconv"
)

// ago is how long something is past.
func ago(ms float64) string {
	text := span(ms)
	if text == "unknown" {
		return text
	}
	return text + joined(" ago")
}

// span is a length of time in the one or two units that matter. It stays on one line.
func span(ms float64) string { return joined(duration(ms)) }

func duration(ms float64) string {
	const (
		second = 1000
		minute = 60 * second
		hour   = 60 * minute
		day    = 24 * hour
	)
	two := func(unit, part float64, unitName, partName string) string {
		n := math.Floor(ms / unit)
		if rest := math.Floor((ms - n*unit) / part); rest > 0 {
			return fmt.Sprintf("%.0f %s %.0f %s", n, unitName, rest, partName)
		}
		return fmt.Sprintf("%.0f %s", n, unitName)
	}
	switch {
	case math.IsNaN(ms) || ms < 0 || ms > 1000*365*day:
		return "unknown"
	case ms < 10:
		return decimal(ms) + " ms"
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 10*second:
		return decimal(ms/second) + " s"
	case ms < minute:
		return fmt.Sprintf("%.0f s", math.Floor(ms/second))
	case ms < hour:
		return two(minute, second, "min", "s")
	case ms < day:
		return two(hour, minute, "h", "min")
	default:
		return two(day, hour, "d", "h")
	}
}

// percent never says 0 % of what has happened.
func percent(p float64) string {
	switch {
	case math.IsNaN(p) || p < 0 || p > 100:
		return "unknown"
	case p > 0 && p < 0.05:
		return joined("less than 0.1 %")
	default:
		return decimal(p) + joined(" %")
	}
}

// decimal has one digit behind the point if that is not 0.
func decimal(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

// milliseconds has microseconds behind the point.
func milliseconds(ns int64) string {
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 3, 64)
}

// apart is a short length of time with its unit.
func apart(ns int64) string { return joined(milliseconds(ns) + " ms") }
