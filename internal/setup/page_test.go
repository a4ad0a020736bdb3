package setup

import (
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
