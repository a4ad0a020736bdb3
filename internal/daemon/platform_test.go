package daemon

import (
	"fmt"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestHolderOptionsOfGroups: a group shares the port with those that have the same one, unless they are on another interface.
func TestHolderOptionsOfGroups(t *testing.T) {
	text := "key_file = \"none\"\n"
	for i, keys := range []string{`interface = "eth0"`, `interface = "eth1"`, ``, `multicast = "239.255.77.77:9999"`} {
		text += fmt.Sprintf("[[group]]\nname = \"dns%d\"\naddress = \"192.168.1.25%[1]d\"\n%s\n", i, keys)
	}
	groups, err := config.ParseGroups("topdog.toml", []byte(text))
	assert.NoError(t, err)
	tag := func(n int) wire.GroupTag { return wire.TagOf(fmt.Sprint("dns", n)) }
	var got [][]wire.GroupTag
	for i, o := range HolderOptions(groups) {
		assert.Is(t, tag(i), o.Tag, "the tag of group %d", i)
		got = append(got, o.Others)
	}
	assert.Equal(t, [][]wire.GroupTag{{tag(2)}, {tag(2)}, {tag(0), tag(1)}, nil}, got, "the others")
}
