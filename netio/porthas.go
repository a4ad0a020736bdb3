package netio

import (
	"fmt"
	"os"
	"os/user"
	"slices"
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
			return programOf(uid)
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

// topdogUsers are those that topdog's packages and manuals have its sockets opened by, beside whoever runs this program.
var topdogUsers = []string{"root", "topdog", "topdog-holder"}

// programOf says what a program of a user may be, whose number it adds to the name. Only some users run topdog.
func programOf(uid int) string {
	number := strconv.Itoa(uid)
	name, text := number, number
	if u, err := user.LookupId(number); err == nil {
		name, text = u.Username, fmt.Sprintf("%s (%s)", u.Username, number)
	}
	if uid == os.Getuid() || slices.Contains(topdogUsers, name) {
		return "another topdog, or another program, of the user " + text
	}
	return "a program of the user " + text
}
