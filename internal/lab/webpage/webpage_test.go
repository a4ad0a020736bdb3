package webpage

import (
	"net"
	"testing"

	"topdog/internal/lab/assert"
)

func TestCheckListen(t *testing.T) {
	for listen, want := range map[string]string{
		":8080": "", "[::1]:80": "", DefaultListen: "",
		"8080": "no HOST:PORT", "": "no HOST:PORT", "pi1:80": "the host is an address", ":http": "a port is a number", ":65536": "a port is a number",
	} {
		assert.ErrorContains(t, CheckListen(listen), want, "%q", listen)
	}
}

func TestURLs(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	for fragment, want := range map[string]string{"": "http://127.0.0.1:80/", "token=T": "http://127.0.0.1:80/#token=T"} {
		assert.Equal(t, []string{want}, URLs(local, fragment), "one address")
		if all := URLs(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}, fragment); len(all) == 0 || all[0] != want {
			t.Errorf("all addresses: %q, want this machine's first", all)
		}
	}
}
