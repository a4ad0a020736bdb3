package netio

import (
	"testing"

	"github.com/vishvananda/netlink/nl"
)

// What a driver of Wi-Fi answers, and what is no answer.
func TestPowerSave(t *testing.T) {
	answer := func(attribute int, value []byte) []byte {
		return append(make([]byte, nl.SizeofGenlmsg), nl.NewRtAttr(attribute, value).Serialize()...)
	}
	for _, tc := range []struct {
		name      string
		answer    []byte
		on, known bool
	}{
		{"on", answer(nl80211AttrPSState, nl.Uint32Attr(1)), true, true},
		{"off", answer(nl80211AttrPSState, nl.Uint32Attr(0)), false, true},
		{"another attribute", answer(nl80211AttrIfindex, nl.Uint32Attr(1)), false, false},
		{"too short a value", answer(nl80211AttrPSState, []byte{1}), false, false},
		{"no attribute", make([]byte, nl.SizeofGenlmsg), false, false},
		{"too short", []byte{1}, false, false},
		{"garbage", append(make([]byte, nl.SizeofGenlmsg), 1, 0, 93, 0), false, false},
	} {
		if on, known := powerSaveOf(tc.answer); on != tc.on || known != tc.known {
			t.Errorf("%s: on %v, known %v", tc.name, on, known)
		}
	}
	if _, known := PowerSave("lo", 1); known {
		t.Error("the loopback interface has a radio")
	}
}
