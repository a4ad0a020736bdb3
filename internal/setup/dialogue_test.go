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
			return Board{Addresses: SplitAddresses(text)}.check()
		})
	}
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
		{"addresses of both families", asksAddress(subnet, free), "192.168.1.99, fd00:1::99\n"},
		{"no suggestion", asksAddress("", ""), "\n192.168.1.7\n"},
		{"a mistake first", asksAddress(subnet, ""), "192.168.1\n::1\n192.168.1.7\n"},
		{"an address of another network first", asksAddress(subnet, ""), "10.0.0.9\n192.168.1.7\n"},
		{"the suggestion does not suit", asksAddress(subnet, "10.0.0.250"), "\n192.168.1.7\n"},
		{"no address after a mistake", asksAddress(subnet, free), "nonsense\n"},
		{"no address", asksAddress(subnet, free), ""},
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
