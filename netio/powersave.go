package netio

import (
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What nl80211 calls them (linux/nl80211.h). The library knows none of it.
const (
	nl80211GetPowerSave  = 0x3e
	nl80211AttrIfindex   = 3
	nl80211AttrPSState   = 0x5d
	nl80211PSEnabled     = 1
	nl80211Family        = "nl80211"
	nl80211FamilyVersion = 1
)

// PowerSave reports whether a Wi-Fi interface lets its radio sleep between the beacons of the access point. It is not known of what is no
// Wi-Fi, and of a driver that does not tell.
func PowerSave(iface string, index int) (on, known bool) {
	if _, err := os.Stat(filepath.Join("/sys/class/net", iface, "phy80211")); err != nil {
		return false, false
	}
	family, err := netlink.GenlFamilyGet(nl80211Family)
	if err != nil {
		return false, false
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	request.AddData(&nl.Genlmsg{Command: nl80211GetPowerSave, Version: nl80211FamilyVersion})
	request.AddData(nl.NewRtAttr(nl80211AttrIfindex, nl.Uint32Attr(uint32(index))))
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil || len(answers) == 0 {
		return false, false
	}
	return powerSaveOf(answers[0])
}

// powerSaveOf reads the answer.
func powerSaveOf(answer []byte) (on, known bool) {
	if len(answer) < nl.SizeofGenlmsg {
		return false, false
	}
	attrs, err := nl.ParseRouteAttr(answer[nl.SizeofGenlmsg:])
	if err != nil {
		return false, false
	}
	for _, a := range attrs {
		if a.Attr.Type == nl80211AttrPSState && len(a.Value) >= 4 {
			return nl.NativeEndian().Uint32(a.Value) == nl80211PSEnabled, true
		}
	}
	return false, false
}
