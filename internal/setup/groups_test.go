package setup

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

const twoGroups = "key_file = \"key\"\n[[group]]\nname = \"dns1\"\naddress = \"192.168.1.250\"\n[[group]]\nname = \"dns2\"\naddress = \"192.168.1.251\"\n"

// A board with several groups is shared, joined again and set up again as one with one group.
func TestSeveralGroups(t *testing.T) {
	first, second := firstBoard(t), t.TempDir()
	assert.NoError(t, os.WriteFile(board(first).Path, []byte(twoGroups), 0o644))
	sent := exported(t, first)
	done, err := importTo(second, sent, false)
	assert.NoError(t, err)
	assert.Is(t, "192.168.1.250, 192.168.1.251", joined(addressesOf(done.groups)), "the addresses that came")
	assert.Equal(t, contents(t, first), contents(t, second), "files")

	for text, want := range map[string]string{
		twoGroups + "priority = 7\n":                   "<nil> [priority]",
		strings.Replace(twoGroups, "dns2", "dns3", 1):  `of the groups ["dns1", "dns3"], and what came of ["dns1", "dns2"]`,
		strings.Replace(twoGroups, ".251", ".252", 1):  `address = "192.168.1.252" here, and "192.168.1.251" in what came`,
		"key_file = \"key\"\naddress = \"10.0.0.9\"\n": `of the groups ["topdog"], and what came of ["dns1", "dns2"]`,
	} {
		assert.NoError(t, os.WriteFile(board(second).Path, []byte(text), 0o644))
		said := ""
		if done, err := importTo(second, sent, false); err != nil {
			said = err.Error()
		} else {
			said = fmt.Sprint(err, " ", done.own)
		}
		says(t, said, want)
	}

	for address, want := range map[string]bool{"192.168.1.250": true, "192.168.1.251": true, "192.168.1.252": false} {
		b := board(first)
		b.Addresses = []string{address}
		isSetUp, err := b.isSetUp(&strings.Builder{})
		assert.Is(t, want, isSetUp && err == nil, "the board is set up with %s: %v", address, err)
	}
}
