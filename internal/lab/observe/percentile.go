package observe

import "time"

// Percentile returns the nearest-rank percentile of times in ascending order: the smallest of them that at least p percent of
// all are not above. With p = 50 it is the median (of an even number the lower of the two in the middle), with p = 100 the
// longest. p is from 1 to 100. Of no times, it is 0.
func Percentile(ascending []time.Duration, p int) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[(p*len(ascending)+99)/100-1]
}
