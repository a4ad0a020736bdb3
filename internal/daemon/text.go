package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// capitalised makes a sentence of a line of the log.
func capitalised(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// joined writes prefixes, or ids, as a list.
func joined[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, ", ")
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func addrTexts(addrs []netip.Addr) (texts []string) {
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return texts
}

func age(d time.Duration) *float64 {
	ms := console.Milliseconds(d)
	return &ms
}

func idText(id wire.ID) string {
	if id == wire.Nobody {
		return ""
	}
	return id.String()
}

// gradeText tells people how fit a board is to lead. It is empty if the board passes.
func gradeText(grade wire.Grade) string {
	switch grade {
	case wire.GradePassing:
		return ""
	case wire.GradeProbation:
		return "on probation"
	default:
		return grade.String()
	}
}

func quoted(addrs []netip.Addr) string {
	texts := make([]string, len(addrs))
	for i, addr := range addrs {
		texts[i] = config.Quote(addr.String())
	}
	return strings.Join(texts, ", ")
}

// ipsOf are the floating addresses without their prefix lengths.
func ipsOf(floating []config.Address) (all []netip.Addr) {
	for _, f := range floating {
		all = append(all, f.IP)
	}
	return all
}
