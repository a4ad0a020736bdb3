package netio

import "time"

// Constants of RFC 5227, section 1.1.
const (
	// ProbeCount is PROBE_NUM: a lost probe must not make an address look free. In a
	// take-over nobody probes: the address is known to be free, or soon will be, and
	// every second of doubt is a second of outage.
	ProbeCount = 3
	// defendEvery and defendBurst say how often a claim of a rival is answered: five at once, and
	// then two a second. RFC 5227, section 2.4 (c), allows one answer in ten seconds
	// (DEFEND_INTERVAL), so that two hosts do not flood the link, and is deliberately not
	// followed: one forged announcement a second would leave the clients without the
	// address for most of the time. Four packets a second flood nobody.
	defendEvery = 500 * time.Millisecond
	defendBurst = 5
)

// Defence says which claims of a rival to our address are answered. Answering means to start the
// announcements over (see AnnouncementDelay). The zero Defence answers the first claims.
type Defence struct{ restedAt time.Duration } // when as many as defendBurst may be answered again

// Answer reports whether a claim that is heard now is answered. now must not go backwards.
func (d *Defence) Answer(now time.Duration) bool {
	rested := max(d.restedAt, now)
	if rested-now > (defendBurst-1)*defendEvery {
		return false
	}
	d.restedAt = rested + defendEvery
	return true
}

// AnnouncementDelay says how long to wait before the next announcement, given
// how many have been sent since the address was acquired. The announcements
// go out at 0, 1.1, 2.2, 4.4 and 10 seconds, and then once a minute.
//
// The first tells almost everybody. The second comes 1.1 s later because a Linux
// neighbour ignores some changes to an entry that is less than a second old
// (locktime); shorter spacing has been seen to fail (metallb issue 172). The next
// ones are for switches whose ports were still learning and for packets that got
// lost, and the slow ones for devices that slept: about 60 bytes a minute.
func AnnouncementDelay(sent int) time.Duration {
	switch {
	case sent <= 0:
		return 0
	case sent <= 2:
		return 1100 * time.Millisecond
	case sent == 3:
		return 2200 * time.Millisecond
	case sent == 4:
		return 5600 * time.Millisecond
	default:
		return time.Minute
	}
}
