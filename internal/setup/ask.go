package setup

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"topdog/internal/config"
)

// ask asks a person at a terminal one question until the answer suits. usual is what an empty answer means, or "". If the
// input ends, it returns the error ended.
func ask(in io.Reader, out io.Writer, question, usual string, suits func(string) error, ended error) (string, error) {
	if usual != "" {
		question += " [" + usual + "]"
	}
	lines := bufio.NewScanner(in)
	for {
		fmt.Fprintf(out, "%s: ", question)
		if !lines.Scan() {
			return "", ended
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
	if err := b.check(text); err != nil {
		return err
	}
	if b.Interface != "" {
		return nil
	}
	address, err := parseAddress(text)
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
			"address: topdog takes none that somebody else has.\n", owner)
	}
	return nil
}

// askAddress asks for the address, and suggests a free one of the subnet if there is one.
func askAddress(in io.Reader, out io.Writer, subnet netip.Prefix, free netip.Addr, suits func(string) error) (string, error) {
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
	return ask(in, out, "Address", usual, suits, usage("no address was given; for example: topdog init 192.168.1.250"))
}

// votersExample is a part of the messages about missing voters.
const votersExample = "for example: topdog init 192.168.1.250 --strict --voters 192.168.1.11,192.168.1.12,192.168.1.13"

// chooseVoters asks for the voters if strict is wanted and none are given.
func (b *Board) chooseVoters(n network, in io.Reader, out io.Writer) (err error) {
	if !b.Strict || len(b.Voters) > 0 {
		return nil
	}
	if !isTerminal(in) {
		return usage("which boards vote? %s", votersExample)
	}
	main, _ := n.main()
	b.Voters, err = b.askVoters(in, out, main.prefix.Addr())
	return err
}

// askVoters asks for the addresses of all voters at once. own is this board's, if it is known.
func (b Board) askVoters(in io.Reader, out io.Writer, own netip.Addr) ([]string, error) {
	fmt.Fprintln(out, "A leader needs the promises of most of the voters. Voters are three boards or more, or two boards and a")
	fmt.Fprintln(out, "witness: any machine of this network that is always on and runs `topdog witness`. Each needs an")
	fmt.Fprintln(out, "own address that never changes: have your router reserve it.")
	if own.IsValid() {
		fmt.Fprintf(out, "This board has %s.\n", own)
	}
	separated := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	suits := func(text string) error {
		if b.Voters = separated(text); len(b.Voters) == 0 {
			return fmt.Errorf("%q has no address", text)
		}
		return b.check(b.Address)
	}
	text, err := ask(in, out, "Own addresses of the voters, separated by commas", "", suits,
		usage("the voters were not given; %s", votersExample))
	return separated(text), err
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

// askPage asks whether the boards shall run the page.
func (b Board) askPage(in io.Reader, out io.Writer) (bool, error) {
	address, err := parseAddress(b.Address)
	if err != nil {
		return false, err
	}
	means := map[string]bool{"yes": true, "y": true, "no": false, "n": false}
	suits := func(text string) error {
		if _, known := means[strings.ToLower(text)]; !known {
			return fmt.Errorf("%q is neither yes nor no", text)
		}
		return nil
	}
	cfg := config.Defaults()
	cfg.Addresses = []config.Address{address}
	fmt.Fprintln(out, "Each board can show the group in a browser, to everybody on this network, read only.")
	text, err := ask(in, out, "Shall they, at "+pageURL(cfg)+" (yes or no)", "no", suits,
		usage("whether to show the group in a browser was not answered; --page or --page=false says it"))
	return means[strings.ToLower(text)], err
}
