package setup

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"topdog/internal/config"
)

// votersExample is a part of what is said when the voters are missing.
const votersExample = "for example: topdog init 192.168.1.250 --strict --voters 192.168.1.11,192.168.1.12,192.168.1.13"

// chooseVoters has the voters asked for if strict is wanted and none are given.
func (b *Board) chooseVoters(n network, in io.Reader, out io.Writer) (err error) {
	if !b.Strict || len(b.Voters) > 0 {
		return nil
	}
	if !isTerminal(in) {
		return usage("which boards vote? %s", votersExample)
	}
	_, own, _ := n.main()
	b.Voters, err = b.askVoters(in, out, own.Addr())
	return err
}

// isVoter says what is wrong with voters that do not contain this board, whose id is its own address.
// Where that is not known, and where boards have numbers as their ids, nothing is said.
func (b *Board) isVoter(n network) error {
	if !b.Strict {
		return nil
	}
	iface := b.Interface
	if iface == "" {
		floating, err := config.ParseAddress(b.Address)
		if err != nil {
			return fmt.Errorf("the address: %w", err)
		}
		found, err := n.find(floating.IP)
		if err != nil {
			return err
		}
		iface = found.Name
	}
	own := n.own(iface)
	for _, v := range b.Voters {
		if addr, err := netip.ParseAddr(v); err != nil || slices.Contains(own, addr) {
			return nil
		}
	}
	if len(own) == 0 {
		return nil
	}
	return usage("this board is not among the voters %s, so it would neither vote nor lead: its own address on %s is %s. Put that into the list, or run this on one of the voters",
		strings.Join(b.Voters, ", "), iface, own[0])
}

// askVoters asks how many voters there are, and then for one after the other.
func (b Board) askVoters(in io.Reader, out io.Writer, own netip.Addr) ([]string, error) {
	questions := newDialog(in, out)
	ended := usage("the voters were not given; %s", votersExample)
	fmt.Fprintln(out, "A leader needs the promises of most of the voters. Voters are the boards, and for two boards a")
	fmt.Fprintln(out, "witness: any machine of this network that is always on and runs `topdog witness`. Each needs an")
	fmt.Fprintln(out, "own address that never changes: have your router reserve it.")
	count, err := questions.ask("How many voters are there", strconv.Itoa(config.MinVoters), suitsAsCount, ended)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(count)
	if err != nil {
		return nil, err
	}
	var voters []string
	for len(voters) < number {
		question, usual := fmt.Sprintf("Own address of voter %d of %d", len(voters)+1, number), ""
		if len(voters) == 0 && own.IsValid() {
			question, usual = question+", this board", own.String()
		}
		suits := func(text string) error { return b.suitsAsVoter(voters, text) }
		voter, err := questions.ask(question, usual, suits, ended)
		if err != nil {
			return nil, err
		}
		voters = append(voters, voter)
	}
	return voters, nil
}

// suitsAsCount says why a text is no number of voters.
func suitsAsCount(text string) error {
	switch n, err := strconv.Atoi(text); {
	case err != nil:
		return fmt.Errorf("%q is not a number", text)
	case n < config.MinVoters:
		return fmt.Errorf("of %d voters, the loss of one would leave no majority: add a witness", n)
	case n > config.MaxVoters:
		return fmt.Errorf("at most %d boards vote; more boards may follow", config.MaxVoters)
	case n%2 == 0:
		return fmt.Errorf("of %d voters no more may fail than of %d: take an odd number", n, n-1)
	}
	return nil
}

// suitsAsVoter says why a text is not one more voter. What a whole list must be like is the
// configuration's to say; so it is asked about one that is long enough.
func (b Board) suitsAsVoter(voters []string, text string) error {
	if _, err := netip.ParseAddr(text); err != nil {
		return fmt.Errorf("%q is not an address", text)
	}
	b.Voters = append(append([]string(nil), voters...), text)
	for filler := range uint32(config.MinVoters) {
		if len(b.Voters) < config.MinVoters {
			b.Voters = append(b.Voters, strconv.Itoa(int(filler)+1))
		}
	}
	return b.check(b.Address)
}

// writeVoters writes what strict needs into the file.
func (b Board) writeVoters(text *strings.Builder) {
	if !b.Strict {
		return
	}
	quoted := make([]string, len(b.Voters))
	for i, v := range b.Voters {
		quoted[i] = config.Quote(v)
	}
	text.WriteString("\n# Never two boards that answer: a leader needs the promises of most of the voters. All boards have\n" +
		"# the same list of their own addresses, which must never change. Change one voter at a time.\n" +
		"algorithm = " + config.Quote(strictAlgorithm) + "\n" +
		"voters = [" + strings.Join(quoted, ", ") + "]\n\n")
}
