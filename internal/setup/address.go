package setup

import (
	"fmt"
	"io"
	"net/netip"

	"topdog/internal/config"
)

// chooseAddress has the address asked for if none is given, and makes sure that it
// belongs to a network of this board.
func (b *Board) chooseAddress(n network, in io.Reader, out io.Writer) (err error) {
	suits := func(address string) error { return b.suits(n, out, address) }
	if b.Address != "" {
		return suits(b.Address)
	}
	if !isTerminal(in) {
		return usage("which address shall the boards keep? For example: topdog init 192.168.1.250")
	}
	subnet, free := n.suggest()
	b.Address, err = ask(in, out, subnet, free, suits)
	return err
}

// suits finds the interface of the address, and says who has it now. Whoever
// names the interface knows better, for instance on a board without its network.
func (b *Board) suits(n network, out io.Writer, text string) error {
	if err := b.check(text); err != nil {
		return err
	}
	if b.Interface != "" {
		return nil
	}
	parsed, err := config.ParseAddress(text)
	if err != nil {
		return fmt.Errorf("the address: %w", err)
	}
	found, err := n.find(parsed.IP)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is in the network of %s (%s)\n", parsed.IP, found.Name, found.Prefix.Masked())
	if found.Ambiguous != "" {
		fmt.Fprintf(out, "note: %s. For `topdog init` that is --interface NAME.\n", found.Ambiguous)
	}
	switch owner, known := n.owner(found.Name, parsed.IP); {
	case !known: // It could not be asked; then nothing is claimed.
	case owner == "":
		fmt.Fprintf(out, "nobody has it at the moment\n")
	default:
		fmt.Fprintf(out, "note: %s has it at the moment. If that is not a board of this group, choose another\n"+
			"address: topdog takes none that somebody else has.\n", owner)
	}
	return nil
}

// ask asks for the address until there is one that suits, or the input ends.
func ask(in io.Reader, out io.Writer, subnet netip.Prefix, free netip.Addr, suits func(string) error) (string, error) {
	fmt.Fprintln(out, "Which address shall the boards keep? An unused one of your network, outside the range")
	fmt.Fprintln(out, "that your router hands out (DHCP).")
	usual := ""
	if subnet.IsValid() {
		fmt.Fprintf(out, "This board is in %s.\n", subnet)
	}
	if free.IsValid() {
		fmt.Fprintf(out, "Nobody answers at %s just now; whether your router would hand it out, only the\nrouter knows.\n", free)
		usual = free.String()
	}
	return newDialog(in, out).ask("Address", usual, suits, usage("no address was given; for example: topdog init 192.168.1.250"))
}
