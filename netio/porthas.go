package netio

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// udpTables list the UDP sockets of this network namespace (proc_net_tcp.txt in the kernel's documentation).
var udpTables = []string{"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"}

// whoHas says in words whose program is bound to a UDP port.
func whoHas(port uint16) string {
	for _, table := range udpTables {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if uid, found := ownerOf(port, string(text)); found {
			return "another topdog, or another program, of the user " + userNamed(uid)
		}
	}
	return "another topdog, or another program,"
}

// ownerOf finds the user who is bound to a port in a table of the kernel.
func ownerOf(port uint16, table string) (uid int, found bool) {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.HasSuffix(fields[1], suffix) {
			continue
		}
		if uid, err := strconv.Atoi(fields[7]); err == nil {
			return uid, true
		}
	}
	return 0, false
}

// userNamed is the name of a user, with the number, or the number alone.
func userNamed(uid int) string {
	number := strconv.Itoa(uid)
	u, err := user.LookupId(number)
	if err != nil {
		return number
	}
	return fmt.Sprintf("%s (%s)", u.Username, number)
}
