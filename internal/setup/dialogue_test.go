package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// question asks for something, and returns the answer.
type question func(in io.Reader, out io.Writer) (string, error)

// asksAddress asks for the address, and suggests one. None of the network 10.0.0.0/8 suits.
func asksAddress(subnet, free string) question {
	network, _ := netip.ParsePrefix(subnet)
	suggested, _ := netip.ParseAddr(free)
	return func(in io.Reader, out io.Writer) (string, error) {
		return askAddress(in, out, network, suggested, func(text string) error {
			if strings.HasPrefix(text, "10.") {
				return fmt.Errorf("%s does not suit", text)
			}
			return Board{}.check(text)
		})
	}
}

// asksVoters asks a board with this address, or without one, for the voters.
func asksVoters(own string) question {
	address, _ := netip.ParseAddr(own)
	return func(in io.Reader, out io.Writer) (string, error) {
		voters, err := Board{Address: "192.168.1.250", Strict: true}.askVoters(in, out, address)
		return strings.Join(voters, " "), err
	}
}

func asksPage(in io.Reader, out io.Writer) (string, error) {
	page, err := Board{Address: "192.168.1.250/24"}.askPage(in, out)
	return fmt.Sprint(page), err
}

// What is asked is in testdata/dialogues.golden, with what is typed and the answer. A mistake is asked about again, and who types
// no more is told which option there is instead.
func TestDialogues(t *testing.T) {
	const subnet, free, own = "192.168.1.0/24", "192.168.1.250", "192.168.1.11"
	var got strings.Builder
	for _, test := range []struct {
		name  string
		asks  question
		typed string
	}{
		{"the suggestion", asksAddress(subnet, free), "\n"},
		{"another address", asksAddress(subnet, free), " 192.168.1.99/24 \n"},
		{"no suggestion", asksAddress("", ""), "\n192.168.1.7\n"},
		{"a mistake first", asksAddress(subnet, ""), "192.168.1\n::1\n192.168.1.7\n"},
		{"an address of another network first", asksAddress(subnet, ""), "10.0.0.9\n192.168.1.7\n"},
		{"the suggestion does not suit", asksAddress(subnet, "10.0.0.250"), "\n192.168.1.7\n"},
		{"no address after a mistake", asksAddress(subnet, free), "nonsense\n"},
		{"no address", asksAddress(subnet, free), ""},

		{"three voters", asksVoters(own), "192.168.1.11,192.168.1.12, 192.168.1.13\n"},
		{"wrong voters", asksVoters(own), ", ,\n192.168.1.11\n192.168.1.11,pi2,192.168.1.250\n10.0.0.1 10.0.0.2 10.0.0.3\n"},
		{"voters of a board without a network", asksVoters(""), "10.0.0.1,10.0.0.2,10.0.0.3\n"},
		{"no voters", asksVoters(own), ""},

		{"the page", asksPage, "yes\n"},
		{"the page, in short", asksPage, " Y \n"},
		{"no page", asksPage, "no\n"},
		{"no page unless it is asked for", asksPage, "\n"},
		{"neither yes nor no", asksPage, "yesterday\nperhaps\ny\n"},
		{"no answer", asksPage, ""},
	} {
		var out bytes.Buffer
		answer, err := test.asks(strings.NewReader(test.typed), &out)
		fmt.Fprintf(&got, "=== %s: %q is typed\n%s\n", test.name, test.typed, &out)
		var usage UsageError
		if err == nil {
			fmt.Fprintf(&got, "--> %s\n\n", answer)
			continue
		}
		assert.Is(t, true, errors.As(err, &usage), "%s: %v is an error of usage", test.name, err)
		fmt.Fprintf(&got, "--> error: %v\n\n", err)
	}
	golden.Compare(t, "testdata/dialogues.golden", got.String())
}
