package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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

// A page that starts while its configuration is replaced waits for the other half.
func TestPageWhoseConfigurationIsReplaced(t *testing.T) {
	dir := t.TempDir()
	must(t, write("topdog.toml", aBoard[:20], 0o600)(dir))
	synctest.Test(t, func(t *testing.T) {
		mender := time.AfterFunc(time.Second, func() {
			if err := write("topdog.toml", aBoard+"page_listen = \":8080\"\n", 0o600)(dir); err != nil {
				t.Error(err)
			}
		})
		defer mender.Stop()
		c, _, err := rootCommand().Find([]string{"page"})
		must(t, err)
		c.SetContext(t.Context())
		must(t, c.ParseFlags([]string{"--config", filepath.Join(dir, "topdog.toml")}))
		o, err := pageOptions(c, "", false)
		if err != nil || o.Listen != ":8080" {
			t.Errorf("it listens on %q: %v", o.Listen, err)
		}
	})
}
