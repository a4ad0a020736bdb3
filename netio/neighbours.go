package netio

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"sort"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Neighbour is a host on the link whose Ethernet address the kernel knows.
type Neighbour struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// NeighbourTable is what the kernel knows of the hosts on one interface. It is read when
// somebody asks, and costs nothing otherwise. Its methods may be called from any goroutine.
type NeighbourTable struct {
	index  int
	mu     sync.Mutex // the handle has one socket
	handle *netlink.Handle
}

// OpenNeighbours opens the table of the interface with the given index.
func OpenNeighbours(index int) (*NeighbourTable, error) {
	handle, err := openHandle()
	if err != nil {
		return nil, err
	}
	return &NeighbourTable{index: index, handle: handle}, nil
}

// List returns the neighbours, first those that were confirmed to be there last.
func (t *NeighbourTable) List() ([]Neighbour, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := dump(func() ([]netlink.Neigh, error) { return t.handle.NeighList(t.index, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("netio: list the neighbours on interface %d: %w", t.index, err)
	}
	sort.Slice(all, func(i, j int) bool { return cmp.Less(freshness(all[i].State), freshness(all[j].State)) })
	var found []Neighbour
	for _, n := range all {
		addr, ok := netip.AddrFromSlice(n.IP.To4())
		if ok && freshness(n.State) < unconfirmed && len(n.HardwareAddr) == len(hardwareAddr{}) {
			found = append(found, Neighbour{Addr: addr, MAC: n.HardwareAddr})
		}
	}
	return found, nil
}

// unconfirmed is the freshness of an entry without an Ethernet address, or whose host did
// not answer.
const unconfirmed = 3

// freshness orders the states of an entry.
func freshness(state int) int {
	switch {
	case state&(unix.NUD_REACHABLE|unix.NUD_DELAY|unix.NUD_PROBE) != 0:
		return 0
	case state&unix.NUD_STALE != 0:
		return 1
	case state&unix.NUD_PERMANENT != 0:
		return 2
	default:
		return unconfirmed
	}
}

// Gateway returns the default gateway, if it is reached by this interface.
func (t *NeighbourTable) Gateway() (gateway netip.Addr, found bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	routes, err := dump(func() ([]netlink.Route, error) {
		return t.handle.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{LinkIndex: t.index, Table: unix.RT_TABLE_MAIN},
			netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return netip.Addr{}, false, fmt.Errorf("netio: find the gateway on interface %d: %w", t.index, err)
	}
	best := 0
	for _, r := range routes {
		addr, ok := netip.AddrFromSlice(r.Gw.To4())
		if !ok || r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		if !found || r.Priority < best {
			gateway, found, best = addr, true, r.Priority
		}
	}
	return gateway, found, nil
}

// Close closes the table.
func (t *NeighbourTable) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handle.Close()
	return nil
}
