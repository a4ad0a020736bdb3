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
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

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
	// isDevice reports whether an interface is a device of this board, such as Ethernet or Wi-Fi, and none that software has made.
	isDevice func(iface string) bool
	// owner asks who has an address; "" if nobody does. It is not known if nobody could be asked.
	owner func(iface string, address netip.Addr) (who string, known bool)
}

// ownAddress is an address that this board has for itself, with its subnet.
type ownAddress struct {
	iface  string
	prefix netip.Prefix
}

func thisNetwork(ctx context.Context) network {
	n := network{own: ownAddresses(), find: netio.FindInterface, isDevice: isDevice}
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
	return found, isForMachine(address, found.Name, found.Prefix)
}

// isForMachine refuses an address that no machine of a network has.
func isForMachine(address netip.Addr, iface string, network netip.Prefix) error {
	if !netio.IsEdge(address, network) {
		return nil
	}
	which := "the first or the last"
	if address.Is6() {
		which = "the first, which is that of all routers,"
	}
	return fmt.Errorf("%s is not an address for a machine: it is %s of %s's network %s", address, which, iface, network.Masked())
}

// networkOf returns the network of an interface that an address lies in. It is invalid if there is none.
func (n network) networkOf(address netip.Addr, iface string) (network netip.Prefix, err error) {
	for _, a := range n.own {
		switch {
		case a.prefix.Addr() == address:
			return netip.Prefix{}, fmt.Errorf("%s is this board's own address; a floating address is one that no machine has for itself", address)
		case a.iface == iface && a.prefix.Contains(address) && a.prefix.Bits() > network.Bits():
			network = a.prefix.Masked()
		}
	}
	if network.IsValid() {
		err = isForMachine(address, iface, network)
	}
	return network, err
}

// ownAddresses returns the addresses that a board has for itself. An address without a subnet is none of them: that is a
// floating address of a daemon that runs. Nor is one that is valid on one link only, which can be no floating address.
func ownAddresses() (own []ownAddress) {
	links, _ := net.Interfaces() // without them, nothing is suggested
	for _, link := range links {
		addrs, err := link.Addrs()
		if err != nil || link.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() {
				own = append(own, ownAddress{link.Name, p})
			}
		}
	}
	return own
}

// isDevice reports whether the kernel has a device behind an interface. It has none behind the bridge of containers, a tunnel or
// a VLAN, by which the other boards may not be reached.
func isDevice(iface string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", iface, "device"))
	return err == nil
}

// probeSpacing is shorter than RFC 5227, section 2.1, demands: this is advice to a person who waits, and
// the daemon probes again before it acquires the address.
const probeSpacing = 200 * time.Millisecond

func ownerOf(ctx context.Context, iface string, address netip.Addr) (who string, known bool) {
	link, err := net.InterfaceByName(iface)
	if err != nil || link.Flags&net.FlagRunning == 0 {
		return "", false
	}
	a, err := netio.OpenAnnouncer(link.Index, netip.Addr{}, address)
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

// ownIPv4 returns the IPv4 addresses that this board has for itself.
func (n network) ownIPv4() []ownAddress {
	return slices.DeleteFunc(slices.Clone(n.own), func(a ownAddress) bool { return a.prefix.Addr().Is6() })
}

// suggest returns the subnet that the boards are probably in, and a free address
// near its end: home routers hand out the middle. Either is invalid if it could not
// be found out.
func (n network) suggest() (subnet netip.Prefix, free netip.Addr) {
	own := n.ownIPv4()
	i := slices.IndexFunc(own, func(a ownAddress) bool { return a.prefix.Addr() == n.wayOut || len(own) == 1 })
	if i < 0 || own[i].prefix.Bits() > 28 {
		return netip.Prefix{}, netip.Addr{}
	}
	main := own[i]
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
	suits := func(addresses string) error { return b.suits(n, out, SplitAddresses(addresses)) }
	if b.Addresses != nil {
		return b.suits(n, out, b.Addresses)
	}
	if !isTerminal(in) {
		return usage("which address shall the boards keep? For example: topdog init 192.168.1.250")
	}
	subnet, free := n.suggest()
	text, err := askAddress(in, out, subnet, free, suits)
	b.Addresses = SplitAddresses(text)
	return err
}

// SplitAddresses reads addresses that are separated by commas or white space.
func SplitAddresses(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// suits finds out whether these can be the floating addresses. An interface that is named is not looked
// at: it may belong to a network that this board is not in yet.
func (b *Board) suits(n network, out io.Writer, texts []string) error {
	asked := *b
	asked.Addresses = texts
	if err := asked.check(); err != nil {
		return err
	}
	groups, err := config.ParseGroups(configName, asked.config())
	if err != nil {
		return err
	}
	for _, cfg := range groups {
		if cfg.Interface != "" {
			continue
		}
		if err := b.findInterface(n, out, cfg); err != nil {
			return err
		}
	}
	return nil
}

// findInterface finds the interface of the addresses of a group, and says who has them now.
func (b *Board) findInterface(n network, out io.Writer, cfg *config.Config) error {
	first := cfg.FirstIPv4()
	found, err := n.interfaceOf(first)
	if err != nil {
		return err
	}
	b.foundOn = found.Name
	fmt.Fprintf(out, "%s is in the network of %s (%s)\n", first, found.Name, found.Prefix.Masked())
	if found.Ambiguous != "" {
		fmt.Fprintf(out, "note: %s. For `topdog init` that is --interface NAME.\n", found.Ambiguous)
	}
	n.sayOwner(out, found.Name, first)
	for _, a := range cfg.Addresses {
		if a.IP == first {
			continue
		}
		switch network, err := n.networkOf(a.IP, found.Name); {
		case err != nil:
			return err
		case network.IsValid():
			fmt.Fprintf(out, "%s is in a network of %s too (%s)\n", a.IP, found.Name, network)
		default:
			fmt.Fprintf(out, "note: %s is in no network of %s that this board is in. Only machines that have a route to\n"+
				"it by this LAN will reach it, or, if you write its prefix length, those that are in its network.\n", a.IP, found.Name)
		}
		n.sayOwner(out, found.Name, a.IP)
	}
	return nil
}

// sayOwner says who has an address now.
func (n network) sayOwner(out io.Writer, iface string, address netip.Addr) {
	switch owner, known := n.owner(iface, address); {
	case !known: // nobody could be asked, so nothing is said
	case owner == "":
		fmt.Fprintf(out, "nobody has it at the moment\n")
	default:
		fmt.Fprintf(out, "note: %s has it at the moment. If that is not a board of this group, choose another\n"+
			"address: topdog does not take one that somebody else has.\n", owner)
	}
}

// askAddress asks a person for the address until it suits, and suggests a free one of the subnet if there is one.
func askAddress(in io.Reader, out io.Writer, subnet netip.Prefix, free netip.Addr, suits func(string) error) (string, error) {
	fmt.Fprintln(out, "Which address shall the boards keep? An unused one of your network, outside the range")
	fmt.Fprintln(out, "that your router hands out (DHCP). One of IPv6 may follow it.")
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
	iface := b.firstInterface()
	var own []netip.Addr
	for _, a := range n.ownIPv4() {
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

// firstInterface is the interface of the addresses; "" if it is not known.
func (b *Board) firstInterface() string {
	if len(b.Interfaces) > 0 {
		return b.Interfaces[0]
	}
	return b.foundOn
}

// findSecond finds another interface by which this board may reach the others, for the configuration to mention. Which line is
// right is for a person to say, and a converted configuration is as it was.
func (b *Board) findSecond(n network) {
	first := b.firstInterface()
	if first == "" || len(b.Interfaces) > 1 || b.converted != nil {
		return
	}
	for _, a := range n.ownIPv4() {
		if a.iface != first && n.isDevice(a.iface) {
			b.second = a.iface
			return
		}
	}
}
