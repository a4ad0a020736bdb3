package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"topdog/internal/config"
)

// TestPageKnowsTheNamesOfTheBoard: who asks by a name of this board is answered before there is a daemon to tell it.
func TestPageKnowsTheNamesOfTheBoard(t *testing.T) {
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "topdog.toml")
	must(t, os.WriteFile(key, []byte("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"), 0o600))
	must(t, os.WriteFile(file, []byte("address = \"192.168.1.250/24\"\nname = \"kitchen\"\nkey_file = \""+key+"\"\npage_hosts = [\"dns.home\"]\n"), 0o600))
	c, _, err := rootCommand().Find([]string{"page"})
	must(t, err)
	must(t, c.ParseFlags([]string{"--config", file}))
	o, err := pageOptions(c, "", true)
	must(t, err)
	for _, name := range []string{"dns.home", "kitchen", config.Defaults().Name} {
		if !slices.Contains(o.Hosts, name) {
			t.Errorf("%q is none of the names %q", name, o.Hosts)
		}
	}
}
