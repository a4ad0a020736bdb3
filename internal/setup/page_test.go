package setup

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// The page is where page_listen has it.
func TestPageURL(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "http://192.168.1.250:9254/",
		`page_listen = ":8080"`:             "http://192.168.1.250:8080/",
		`page_listen = "[::]:8080"`:         "http://192.168.1.250:8080/",
		`page_listen = "0.0.0.0:8080"`:      "http://192.168.1.250:8080/",
		`page_listen = "192.168.1.11:9254"`: "http://192.168.1.11:9254/",
		`page_listen = "[fd00::11]:9254"`:   "http://[fd00::11]:9254/",
		`page_listen = "127.0.0.1:9254"`:    "http://127.0.0.1:9254/",
		`page_hosts = "topdog.lan"`:         "http://192.168.1.250:9254/",
	} {
		cfg, err := config.Parse(configName, []byte("address = [\"192.168.1.250/24\", \"10.0.0.1\"]\n"+line))
		assert.NoError(t, err)
		assert.Is(t, want, pageURL(cfg), "%s", line)
	}
}

// With the page, the lines that are printed start it, on this board and on the others.
func TestInitPage(t *testing.T) {
	init := func(page bool) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), configName)
		b := Board{Path: path, Address: "10.0.0.9", Interface: "eth0", Page: page, AskPage: !page}
		var out bytes.Buffer
		assert.NoError(t, b.initIn(networkOf("10.0.0.1"), strings.NewReader(""), &out))
		return strings.ReplaceAll(out.String(), path, config.DefaultPath)
	}
	const other = "    sudo topdog init --export --config /etc/topdog/topdog.toml | ssh USER@BOARD 'sudo topdog init --import --config /etc/topdog/topdog.toml && sudo systemctl enable --now topdog"
	for _, tc := range []struct {
		page bool
		says []string
		not  string
	}{
		{true, []string{"    sudo systemctl enable --now topdog topdog-page\n", other + " topdog-page'\n", "Then a browser shows the group at http://10.0.0.9:9254/\n"}, "To show"},
		{false, []string{"    sudo systemctl enable --now topdog\n", other + "'\n", "To show the group in a browser, at http://10.0.0.9:9254/, each board that may have the address needs\n\n    sudo systemctl enable --now topdog-page\n"}, "topdog topdog-page"},
	} {
		said := init(tc.page)
		says(t, said, tc.says...)
		if strings.Contains(said, tc.not) {
			t.Errorf("page %v: it says %q:\n%s", tc.page, tc.not, said)
		}
	}
}
