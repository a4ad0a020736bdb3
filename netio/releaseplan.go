package netio

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// ReleasePlan is what a companion does when the daemon no longer can: which addresses it
// removes, and whom it tells that by which datagram.
type ReleasePlan struct {
	// Link is the index of the device that has the addresses.
	Link      int          `json:"link"`
	Addresses []netip.Addr `json:"addresses"`
	// Label is what all of them have while they are held this time; "" for any.
	Label string `json:"label"`
	// Resign is a RESIGN that the daemon has signed beforehand, nil for none. It is sent
	// to all of To.
	Resign []byte           `json:"resign"`
	To     []netip.AddrPort `json:"to"`
	// Fenced says that nobody reaches this board by the addresses once the lease has been ended,
	// whether or not they are removed. The fence's programs come with the plan.
	Fenced bool `json:"fenced"`
	// From is the Conn of which the socket that sends it has the options.
	From *Conn `json:"-"`
	// device is the TUN device, if there is one, until it is in a bundle. The companion keeps it open as
	// well: to take a device down costs the kernel some 20 ms, and a killed process
	// would keep its end of the socket for that long.
	device *os.File
}

// maxPlanBytes bounds the message that carries a plan: a RESIGN, and the addresses of
// 255 peers in JSON.
const maxPlanBytes = 16 << 10

// maxPlanFiles bounds the files that come with a plan: the socket that sends the RESIGN, and the bundle of
// the device and the fence's programs.
const maxPlanFiles = 2

// send gives the plan to the companion: the plan in JSON, and the files that it needs.
func (p *ReleasePlan) send(socket int, f *Fence) error {
	p.Fenced = f.Closes()
	message, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if len(message) > maxPlanBytes {
		return fmt.Errorf("%d bytes are too long (at most %d)", len(message), maxPlanBytes)
	}
	var files []int
	if p.From != nil {
		sender, err := p.From.openSender()
		if err != nil {
			return fmt.Errorf("open a socket for the pre-signed RESIGN: %w", err)
		}
		defer sender.Close()
		files = append(files, int(sender.Fd()))
	}
	return f.share(p.device, func(bundle int) error {
		if bundle >= 0 {
			files = append(files, bundle)
		}
		var rights []byte
		if len(files) > 0 {
			rights = unix.UnixRights(files...)
		}
		return unix.Sendmsg(socket, message, rights, nil, unix.MSG_NOSIGNAL)
	})
}

// openSender opens a socket that sends as the Conn does, but from a port of its own: the one
// of the group must be free when the daemon has ended and is started again.
func (c *Conn) openSender() (*os.File, error) {
	socket, err := openSocket(c.options, c.index, netip.AddrPortFrom(c.options.Local, 0), PathUnicast)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	return socket.File()
}
