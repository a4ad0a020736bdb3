package netns

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Deafen has the switch drop every frame to the host, or stop to do so. What the host sends arrives, and the carrier stays.
func (h *Host) Deafen(deaf bool) error {
	return h.change("drop what the host is sent", func() error {
		return h.lan.fabric.do(func() error { return discard(h.port().Attrs().Index, deaf) })
	})
}

// Silence has the host's interface drop every frame that the host sends, or stop to do so. What is sent to the host
// arrives, and the carrier stays.
func (h *Host) Silence(mute bool) error {
	return h.change("drop what the host sends", func() error {
		eth0, err := h.nl.LinkByName(h.Interface)
		if err != nil {
			return err
		}
		return onOwnThread(func() error {
			if err := h.enter(); err != nil {
				return err
			}
			return discard(eth0.Attrs().Index, mute)
		})
	})
}

// discard has an interface of the namespace of the calling thread drop what it should send: its
// queueing discipline is the one that drops everything (net/sched/sch_blackhole.c). An interface that is made anew
// drops nothing.
func discard(index int, everything bool) error {
	request := nl.NewNetlinkRequest(unix.RTM_DELQDISC, unix.NLM_F_ACK)
	if everything {
		request = nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	}
	request.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(index), Parent: netlink.HANDLE_ROOT})
	if everything {
		request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("blackhole")))
	}
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("change the queueing discipline (does the kernel have one that drops everything?): %w", err)
	}
	return nil
}
