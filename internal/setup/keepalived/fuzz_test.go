package keepalived

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// No file makes the converter fail otherwise than by an error with a place in that file, and what it
// writes is TOML, and no shell sees anything but words in it.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		assert.NoError(f, err)
		f.Add(string(text), "")
	}
	f.Add("$A=${A}\n@pi1 @^x ~SEQ(\n\"\\\\\\#\n{}}{", "VI_1")
	f.Add(tracked(`script "\x \c \777 'a"`), "")
	f.Add("vrrp_instance V {\ninterface a\nvirtual_ipaddress {\n10.0.0.1 dev\n}\nnotify \"a'b c\\nd\" x\nunicast_peer {\n10.0.0.2 y\n}\n}\n", "V")
	f.Add("vrrp_instance A {\nvirtual_ipaddress {\n10.0.0.1\n}\n}\nvrrp_instance B {\nnative_ipv6\nvirtual_ipaddress {\nfe80::1 dev\nFD00::1/128 dev x y\n}\ntrack_script {\ns\n}\n}\n", "")
	f.Add(strings.NewReplacer("V1", "ü", "V2", "group-1").Replace(instances(3)), "")
	f.Add("vrrp_sync_group G {\ngroup {\nA B\n}\n}\nvrrp_instance B {\nvirtual_ipaddress {\n::1/0\n}\n}\nvrrp_instance A {\nvirtual_ipaddress_excluded {\n10.0.0.1\n}\n}\n", "A")
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > 10_000 {
			return
		}
		lines := strings.Count(text, "\n") + 1
		within := func(p Place) bool {
			return p.file == "k.conf" && p.line >= 0 && p.line <= lines && p.column >= 0 && p.column <= 1+utf8.RuneCountInString(text)
		}
		g, err := convertText(text, name)
		var problems config.Errors
		var choice *ChoiceError
		switch {
		case err == nil:
		case errors.As(err, &problems):
			if p := problems[0]; !within(Place{p.File, p.Line, p.Column}) {
				t.Errorf("an error is elsewhere: %v", err)
			}
			return
		case errors.As(err, &choice):
			return
		default:
			t.Fatalf("another kind of error: %v", err)
		}
		for _, n := range g.Notes {
			if !within(n.Place) || n.Text == "" || strings.ContainsAny(n.Keyword+n.Text, "\x00\x1b\r\n\t") {
				t.Errorf("a note that cannot be shown, or is elsewhere: %+v", n)
			}
		}
		text = ""
		names := map[string]bool{}
		for _, one := range g.Groups {
			if first := one.Addresses[0]; !isAddress(first, netip.Addr.Is4) {
				t.Errorf("%s is the first address", first)
			}
			if len(g.Groups) > 1 && (config.CheckGroup(one.Name) != nil || names[one.Name]) {
				t.Errorf("%q cannot be the name of this group, or is that of another one", one.Name)
			}
			names[one.Name] = true
			text += "[[group]]\n" + one.Own + one.Checks
		}
		text += g.Checks
		var anything map[string]any
		if err := toml.Unmarshal([]byte(text), &anything); err != nil {
			t.Errorf("no TOML: %v\n%s", err, text)
		}
	})
}
