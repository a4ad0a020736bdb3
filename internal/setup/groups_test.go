package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

const twoGroups = "key_file = \"key\"\n[[group]]\nname = \"dns1\"\naddress = \"192.168.1.250\"\n[[group]]\nname = \"dns2\"\naddress = \"192.168.1.251\"\n"

// A board with several groups is shared and joined again as one with one group.
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

	_, err = importTo(first, exported(t, firstBoard(t)), false)
	assert.ErrorContains(t, err, `of the groups ["dns1", "dns2"], and what came of ["topdog"]`, "one group for a board with two")
}

// Setting a board up again finds its group among several, and changes no file that has another one.
func TestInitOnSeveralGroups(t *testing.T) {
	const refused = `each [[group]] in it is a group, and none of ["dns1", "dns2"] is as asked for; edit the file, or use --force to replace it, all its groups and the key`
	for _, tc := range []struct {
		name  string
		asked Board
		want  string
	}{
		{"the first address", Board{Addresses: []string{"192.168.1.250"}}, "<nil>"},
		{"the second address", Board{Addresses: []string{"192.168.1.251"}}, "<nil>"},
		{"the second group", Board{Group: "dns2"}, "<nil>"},
		{"nothing", Board{}, "<nil>"},
		{"another address", Board{Addresses: []string{"192.168.1.252"}}, refused},
		{"both addresses", Board{Addresses: []string{"192.168.1.250", "192.168.1.251"}}, refused},
		{"the address of the other group", Board{Addresses: []string{"192.168.1.250"}, Group: "dns2"}, refused},
		{"a light", Board{LED: "GPIO17"}, refused},
		{"votes", Board{Addresses: []string{"192.168.1.250"}, Strict: true, Voters: []string{"192.168.1.1", "192.168.1.2", "192.168.1.3"}}, refused},
		{"votes without voters", Board{Strict: true}, "which boards vote?"},
	} {
		dir := firstBoard(t)
		assert.NoError(t, os.WriteFile(board(dir).Path, []byte(twoGroups), 0o644))
		before := contents(t, dir)
		asked := tc.asked
		asked.Path = board(dir).Path
		var out strings.Builder
		err := asked.Init(t.Context(), strings.NewReader(""), &out)
		if said := fmt.Sprint(err); !strings.Contains(said, tc.want) {
			t.Errorf("%s: %s\nwant %s", tc.name, said, tc.want)
		}
		if err == nil {
			says(t, out.String(), "set up already ("+asked.Path+", 192.168.1.250, 192.168.1.251); nothing was changed")
		}
		assert.Equal(t, before, contents(t, dir), "files after %s", tc.name)
	}
}

// A conversion of one instance is one group too.
func TestInitFromOnSeveralGroups(t *testing.T) {
	b := converting(t)
	assert.NoError(t, os.MkdirAll(filepath.Dir(b.Path), 0o755))
	assert.NoError(t, os.WriteFile(b.Path, []byte(twoGroups), 0o644))
	_, err := initOutput(t, b)
	assert.ErrorContains(t, err, `none of ["dns1", "dns2"] is as asked for`, "one instance over two groups")
	b.Instance = ""
	_, err = initOutput(t, b)
	assert.ErrorContains(t, err, `the groups ["dns1", "dns2"] instead of ["VI_1", "VI_2"]`, "two instances over two groups")
	assert.Is(t, twoGroups, read(t, b.Path), "the file")
}
