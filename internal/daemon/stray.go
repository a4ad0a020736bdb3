package daemon

import (
	"fmt"

	"topdog/internal/console"
	"topdog/netio"
)

// strays are the floating addresses that this board's kernel has where topdog has not put them: somebody has added them by hand, or left
// them there. The kernel answers for them, whoever leads.
func (a *address) strays() (strays []string) {
	for _, l := range a.everywhere {
		if !a.link.isFloating(l.Prefix.Addr()) {
			continue
		}
		here := a.held || a.wanted || a.unreleased
		if here && a.addresses != nil && l.Prefix.IsSingleIP() && l.Device == a.addresses.State().Device {
			continue
		}
		strays = append(strays, fmt.Sprintf("%v is on %s, and topdog has not put it there, so this board answers for it whoever leads: ip addr del %[1]v dev %[2]s",
			l.Prefix, l.Device))
	}
	return strays
}

// located enters all addresses that this board has now.
func (a *address) located(all []netio.LocalAddr) { a.everywhere = all }

// checkStrays tells people of them. One that topdog removes at the moment is no stray.
func (a *address) checkStrays() {
	strays := a.strays()
	long := a.strayFor.update(a.now(), len(strays) > 0)
	switch {
	case len(strays) == 0:
		a.reporter.solved(console.ProblemStrayAddress)
	case long:
		a.reporter.warn(console.ProblemStrayAddress, strays[0], forever)
	}
}
