package setup

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"topdog/internal/config"
	"topdog/netio"
)

// network is what `topdog init` asks about the LAN.
type network struct {
	own    []ownAddress
	wayOut netip.Addr // the own address that reaches the world; invalid if none does
	// find returns the interface that an address belongs to.
	find func(netip.Addr) (netio.Choice, error)
	// owner asks who has an address; "" if nobody does. It is not known if nobody could be asked.
	owner func(iface string, address netip.Addr) (who string, known bool)
}

// ownAddress is an IPv4 address that this board has for itself, with its subnet.
type ownAddress struct {
	iface  string
	prefix netip.Prefix
}

func thisNetwork(ctx context.Context) network {
	n := network{own: ownAddresses(), find: netio.FindInterface}
	n.owner = func(iface string, address netip.Addr) (string, bool) { return ownerOf(ctx, iface, address) }
	// This "connection" sends nothing: it makes the kernel choose a route. The address is one for documentation (RFC 5737).
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		if local, ok := c.LocalAddr().(*net.UDPAddr); ok {
			n.wayOut = local.AddrPort().Addr().Unmap()
		}
		c.Close()
	}
	return n
}

// interfaceOf returns the interface that a floating address belongs to.
func (n network) interfaceOf(address netip.Addr) (netio.Choice, error) {
	// This comes first, because another interface in the same network would be found for it.
	if slices.ContainsFunc(n.own, func(a ownAddress) bool { return a.prefix.Addr() == address }) {
		return netio.Choice{}, fmt.Errorf("%s is this board's own address; the floating address is another one, which no machine has for itself", address)
	}
	found, err := n.find(address)
	if err != nil {
		return netio.Choice{}, fmt.Errorf("%w (for `topdog init` that is --interface NAME)", err)
	}
	if subnet := found.Prefix.Masked(); netio.IsEdge(address, subnet) {
		return netio.Choice{}, fmt.Errorf("%s is not an address for a machine: it is the first or the last of %s's network %s",
			address, found.Name, subnet)
	}
	return found, nil
}

// ownAddresses returns the IPv4 addresses that a board has for itself. A /32 is none of them: that is the floating address
// of a daemon that runs.
func ownAddresses() (own []ownAddress) {
	links, _ := net.Interfaces() // without them, nothing is suggested
	for _, link := range links {
		addrs, err := link.Addrs()
		if err != nil || link.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.IsSingleIP() {
				own = append(own, ownAddress{link.Name, p})
			}
		}
	}
	return own
}

// probeSpacing is shorter than RFC 5227, section 2.1, demands: this is advice to a person who waits, and
// the daemon probes again before it acquires the address.
const probeSpacing = 200 * time.Millisecond

func ownerOf(ctx context.Context, iface string, address netip.Addr) (who string, known bool) {
	link, err := net.InterfaceByName(iface)
	if err != nil || link.Flags&net.FlagRunning == 0 {
		return "", false
	}
	a, err := netio.OpenAnnouncer(link.Index, netip.Addr{})
	if err != nil {
		return "", false // not root, or no Ethernet
	}
	defer a.Close()
	mac, found, err := a.Probe(ctx, address, netio.ProbeCount, probeSpacing)
	switch {
	case err != nil:
		return "", false
	case found:
		return mac.String(), true
	}
	return "", true
}

// tries is how many addresses are asked about before there is no suggestion.
const tries = 8

// suggest returns the subnet that the boards are probably in, and a free address
// near its end: home routers hand out the middle. Either is invalid if it could not
// be found out.
func (n network) suggest() (subnet netip.Prefix, free netip.Addr) {
	i := slices.IndexFunc(n.own, func(a ownAddress) bool { return a.prefix.Addr() == n.wayOut || len(n.own) == 1 })
	if i < 0 || n.own[i].prefix.Bits() > 28 {
		return netip.Prefix{}, netip.Addr{}
	}
	main := n.own[i]
	subnet = main.prefix.Masked()
	// From .250 of a /24 downwards: .254 is often the router's own.
	const fromTheEnd = 5
	address := netio.LastAddr(subnet)
	for range fromTheEnd - 1 {
		address = address.Prev()
	}
	for range tries {
		address = address.Prev()
		if address == main.prefix.Addr() {
			continue
		}
		owner, known := n.owner(main.iface, address)
		if !known {
			return subnet, netip.Addr{}
		}
		if owner == "" {
			return subnet, address
		}
	}
	return subnet, netip.Addr{}
}

// isTerminal reports whether a person is at the other end.
func isTerminal(end any) bool {
	f, ok := end.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// chooseAddress asks for the address if none is given, and makes sure that it belongs to a network of this board.
func (b *Board) chooseAddress(n network, in io.Reader, out io.Writer) (err error) {
	suits := func(address string) error { return b.suits(n, out, address) }
	if b.Address != "" {
		return suits(b.Address)
	}
	if !isTerminal(in) {
		return usage("which address shall the boards keep? For example: topdog init 192.168.1.250")
	}
	subnet, free := n.suggest()
	b.Address, err = askAddress(in, out, subnet, free, suits)
	return err
}

// suits finds the interface of the address, and says who has the address now. An interface that is named is not looked
// at: it may belong to a network that this board is not in yet.
func (b *Board) suits(n network, out io.Writer, text string) error {
	asked := *b
	asked.Address = text
	if err := asked.check(); err != nil {
		return err
	}
	if b.Interface != "" {
		return nil
	}
	address, err := config.ParseAddress(text)
	if err != nil {
		return err
	}
	found, err := n.interfaceOf(address.IP)
	if err != nil {
		return err
	}
	b.foundOn = found.Name
	fmt.Fprintf(out, "%s is in the network of %s (%s)\n", address.IP, found.Name, found.Prefix.Masked())
	if found.Ambiguous != "" {
		fmt.Fprintf(out, "note: %s. For `topdog init` that is --interface NAME.\n", found.Ambiguous)
	}
	switch owner, known := n.owner(found.Name, address.IP); {
	case !known: // nobody could be asked, so nothing is said
	case owner == "":
		fmt.Fprintf(out, "nobody has it at the moment\n")
	default:
		fmt.Fprintf(out, "note: %s has it at the moment. If that is not a board of this group, choose another\n"+
			"address: topdog does not take one that somebody else has.\n", owner)
	}
	return nil
}

// askAddress asks a person for the address until it suits, and suggests a free one of the subnet if there is one.
func askAddress(in io.Reader, out io.Writer, subnet netip.Prefix, free netip.Addr, suits func(string) error) (string, error) {
	fmt.Fprintln(out, "Which address shall the boards keep? An unused one of your network, outside the range")
	fmt.Fprintln(out, "that your router hands out (DHCP).")
	question, usual := "Address: ", ""
	if subnet.IsValid() {
		fmt.Fprintf(out, "This board is in %s.\n", subnet)
	}
	if free.IsValid() {
		fmt.Fprintf(out, "Nobody answers at %s just now; whether your router would hand it out, only the\nrouter knows.\n", free)
		usual = free.String()
		question = "Address [" + usual + "]: "
	}
	for lines := bufio.NewScanner(in); ; {
		fmt.Fprint(out, question)
		if !lines.Scan() {
			return "", usage("no address was given; for example: topdog init 192.168.1.250")
		}
		text := cmp.Or(strings.TrimSpace(lines.Text()), usual)
		if text == "" {
			continue
		}
		err := suits(text)
		if err == nil {
			return text, nil
		}
		fmt.Fprintf(out, "%v\n", err)
	}
}

// isVoter refuses a list of voters in which this board's own address is missing. It accepts the list if that address is not
// known, or if the ids are numbers.
func (b *Board) isVoter(n network) error {
	if !b.Strict {
		return nil
	}
	iface := cmp.Or(b.Interface, b.foundOn)
	var own []netip.Addr
	for _, a := range n.own {
		if a.iface == iface {
			own = append(own, a.prefix.Addr())
		}
	}
	if len(own) == 0 {
		return nil
	}
	for _, v := range b.Voters {
		if addr, err := netip.ParseAddr(v); err != nil || slices.Contains(own, addr) {
			return nil
		}
	}
	return usage("this board is not among the voters %s, so it would neither vote nor lead: its own address on %s is %s. Put that into the list, or run this on one of the voters",
		strings.Join(b.Voters, ", "), iface, own[0])
}
