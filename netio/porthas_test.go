package netio

import (
	"net"
	"net/netip"
	"os"
	"os/user"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// TestPortOfAStranger: whoever has bound to the port of the group is named.
func TestPortOfAStranger(t *testing.T) {
	o := onLoopback(1)[0]
	taken, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.IPv4Unspecified(), o.Group.Port())))
	must(t, err)
	defer taken.Close()
	me, err := user.Current()
	must(t, err)
	_, err = Open(o)
	want := "another topdog, or another program, of the user " + me.Username + " (" + me.Uid + ") has this port"
	assert.ErrorIs(t, err, unix.EADDRINUSE, "")
	assert.ErrorContains(t, err, want, "")
}

// TestProgramOf: a user who does not run topdog is not suspected of it.
func TestProgramOf(t *testing.T) {
	for uid, want := range map[int]string{
		0:           "another topdog, or another program, of the user root (0)",
		os.Getuid(): "another topdog, or another program, of the user ",
		1<<31 - 7:   "a program of the user 2147483641",
	} {
		if got := programOf(uid); !strings.HasPrefix(got, want) {
			t.Errorf("the user %d: %q, not %q", uid, got, want)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	const table = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  361: 3500007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 22410 2 0000000000000000 0
  492: 00000000:2426 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 31337 2 0000000000000000 0
`
	for port, want := range map[uint16]int{53: 101, 9254: 1000} {
		if uid, found := ownerOf(port, table); !found || uid != want {
			t.Errorf("port %d: user %d, found %t; want %d", port, uid, found, want)
		}
	}
	for _, text := range []string{table, "", "sl\n", strings.Repeat(":2427 ", 9)} {
		if uid, found := ownerOf(9255, text); found {
			t.Errorf("nobody has it, and it says user %d", uid)
		}
	}
	_, err := os.Stat(udpTables[0])
	must(t, err)
}
