package daemon

import (
	"fmt"

	"topdog/internal/console"
)

// strays are the floating addresses that this board's kernel has where topdog has not put them: somebody has added them by
// hand, or left them there. The kernel answers for them, whoever leads; for one of IPv6, only on the interface that has it.
func (a *address) strays() (strays []string) {
	here := ""
	if a.addresses != nil && (a.held || a.wanted || a.unreleased) {
		here = a.addresses.State().Device
	}
	for _, l := range a.link.everywhere() {
		if a.link.isFloating(l.Prefix.Addr()) && !(l.Prefix.IsSingleIP() && l.Device == here) {
			so := "answers for it whoever leads"
			if l.Prefix.Addr().Is6() && l.Device != a.link.iface() {
				so = "itself never reaches the leader there"
			}
			strays = append(strays, fmt.Sprintf("%v is on %s, and topdog has not put it there, so this board %s: ip addr del %[1]v dev %[2]s",
				l.Prefix, l.Device, so))
		}
	}
	return strays
}

// checkStrays tells people of strays. One that topdog removes at the moment is none.
func (a *address) checkStrays() {
	strays := a.strays()
	switch long := a.stray.update(a.now(), len(strays) > 0); {
	case len(strays) == 0:
		a.reporter.solved(console.ProblemStrayAddress)
	case long:
		a.reporter.set(console.ProblemStrayAddress, strays[0])
	}
}
