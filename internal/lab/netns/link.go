package netns

import (
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// newlink is a request to the kernel for a new interface. netlink.LinkAdd asks for
// every kind that Linux has, so that a program which calls it for a bridge and a veth
// carries all of them: 130 kB of a daemon's program, for its demo.
type newlink struct {
	request *nl.NetlinkRequest
	head    *nl.IfInfomsg
	own     *nl.RtAttr // for the attributes of this kind of interface
}

func newLink(kind, name string) newlink {
	l := newlink{
		request: nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK),
		head:    nl.NewIfInfomsg(unix.AF_UNSPEC),
	}
	l.request.AddData(l.head)
	l.set(unix.IFLA_IFNAME, nl.ZeroTerminated(name))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated(kind))
	l.own = info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	l.request.AddData(info)
	return l
}

// set sets an attribute that every interface has.
func (l newlink) set(attribute int, value []byte) { l.request.AddData(nl.NewRtAttr(attribute, value)) }

// create makes the interface in the namespace of the calling thread.
func (l newlink) create() error {
	_, err := l.request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
