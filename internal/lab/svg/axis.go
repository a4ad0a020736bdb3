package svg

import "math"

// Axis maps values to pixels.
type Axis struct {
	Low, High float64 // the values at both ends; on a logarithmic axis their powers of ten
	From, To  float64 // pixels
	Log       bool
}

// At is where a value stands. What is beyond an end stands at the end. On an axis of one
// value alone that stands in the middle.
func (a Axis) At(v float64) float64 {
	if a.Low == a.High {
		return (a.From + a.To) / 2
	}
	if a.Log {
		v = math.Log10(v)
	}
	share := (v - a.Low) / (a.High - a.Low)
	return a.From + min(max(share, 0), 1)*(a.To-a.From)
}

// Ticks are round values from end to end. On a logarithmic axis they are 1, 2, 5, 10 and so
// on, and the powers of ten alone if there are three of them or more. Another axis begins
// at 0, and has four to eight steps.
func (a Axis) Ticks() []float64 {
	var list []float64
	if !a.Log {
		step := math.Pow(10, math.Floor(math.Log10(a.High)))
		for a.High/step < 4 {
			step /= 2
		}
		for v := 0.0; v <= a.High; v += step {
			list = append(list, v)
		}
		return list
	}
	const rounding = 1e-9
	for power := math.Floor(a.Low); power <= a.High; power++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Round(math.Pow(10, power))
			at := math.Log10(v)
			if at >= a.Low-rounding && at <= a.High+rounding && (m == 1 || a.High-a.Low < 3) {
				list = append(list, v)
			}
		}
	}
	return list
}
