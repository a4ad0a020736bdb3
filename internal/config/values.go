package config

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/health"
	"topdog/netio"
	"topdog/wire"
)

// Address is a floating address. The prefix length is optional: usually it is
// that of the subnet in which the address is found.
type Address struct {
	IP   netip.Addr
	Bits int // 1 to 32, or FromSubnet
}

// FromSubnet as Address.Bits means: take the prefix length of the interface's
// subnet that contains the address.
const FromSubnet = 0

// String returns the address as it is written in a file.
func (a Address) String() string {
	if a.Bits == FromSubnet {
		return a.IP.String()
	}
	return a.IP.String() + "/" + strconv.Itoa(a.Bits)
}

// ParseAddress reads "192.168.1.250" or "192.168.1.250/24".
func ParseAddress(text string) (Address, error) {
	const example = `write an unused address of the network, for example "192.168.1.250" or "192.168.1.250/24"`
	host, length, hasLength := strings.Cut(text, "/")
	ip, err := parseIPv4(host, example)
	if err != nil {
		return Address{}, err
	}
	if err := netio.CheckFloating(ip); err != nil {
		return Address{}, refuse(example, "%v", err)
	}
	if !hasLength {
		return Address{ip, FromSubnet}, nil
	}
	size, err := strconv.Atoi(length)
	if err != nil || size < 1 || size > 32 || length != strconv.Itoa(size) {
		hint := "write a prefix length from 1 to 32, or leave it out: then it is that of the subnet"
		if ones := prefixLength(length); ones > 0 {
			hint = "write the netmask as a prefix length: " + Quote(host+"/"+strconv.Itoa(ones))
		}
		return Address{}, refuse(hint, "%s is not a prefix length", quoted("/"+length))
	}
	// RFC 3021 gives /31 no network and broadcast address; /32 has one address.
	if size < 31 {
		hostPart := uint32(1)<<(32-size) - 1
		switch uint32(wire.IDFromAddr(ip)) & hostPart {
		case 0:
			return Address{}, refuse(example, "%s is the address of the network itself", text)
		case hostPart:
			return Address{}, refuse(example, "%s is the broadcast address of its network", text)
		}
	}
	return Address{ip, size}, nil
}

// prefixLength returns 24 for the netmask "255.255.255.0", and 0 for anything
// that is no netmask.
func prefixLength(mask string) int {
	ip, err := netip.ParseAddr(mask)
	if err != nil || !ip.Is4() {
		return 0
	}
	hostPart := ^uint32(wire.IDFromAddr(ip))
	if hostPart&(hostPart+1) != 0 { // not of the form 0…01…1
		return 0
	}
	return bits.LeadingZeros32(hostPart)
}

// parseIPv4 reads a unicast IPv4 address and says precisely why it cannot.
func parseIPv4(text, example string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		if _, portErr := netip.ParseAddrPort(text); portErr == nil {
			return ip, refuse(example, "%s has a port, only the address belongs here", quoted(text))
		}
		if strings.TrimSpace(text) != text {
			return ip, refuse(example, "there is a space in %s", quoted(text))
		}
		if plain := withoutLeadingZeros(text); plain != text {
			return ip, refuse("write "+Quote(plain), "%s has leading zeros, which some programs read as octal", quoted(text))
		}
		return ip, refuse(example, "%s is not an IPv4 address", quoted(text))
	case !ip.Is4():
		return ip, refuse(example, "%s is an IPv6 address; topdog holds IPv4 addresses", quoted(text))
	case ip.As4()[0] == 0:
		return ip, refuse(example, "%s names no host (RFC 1122: 0.0.0.0/8 is \"this network\")", text)
	case ip.IsMulticast():
		return ip, refuse(example, "%s is a multicast address", text)
	case ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return ip, refuse(example, "%s is the broadcast address", text)
	}
	return ip, nil
}

// withoutLeadingZeros returns the IPv4 address that was probably meant by
// something like 192.168.001.250, or text itself.
func withoutLeadingZeros(text string) string {
	parts := strings.Split(text, ".")
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return text
		}
		parts[i] = strconv.FormatUint(n, 10)
	}
	if len(parts) != 4 {
		return text
	}
	return strings.Join(parts, ".")
}

// autoID as id means the board's own IPv4 address on the group's interface, which is
// unique on a LAN by construction.
const autoID = "auto"

// parseID reads a number, a dotted IPv4 address, or autoID, which is wire.Nobody.
func parseID(text string) (wire.ID, error) {
	const example = `write a number from 1 to 4294967295 such as id = 3, an address such as id = "192.168.1.3", or id = "auto"`
	if text == autoID {
		return wire.Nobody, nil
	}
	if strings.Contains(text, ".") {
		ip, err := parseIPv4(text, example)
		if err != nil {
			return wire.Nobody, err
		}
		return wire.IDFromAddr(ip), nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "0":
		return wire.Nobody, refuse(example, "0 is nobody's id")
	case err != nil:
		return wire.Nobody, refuse(example, "%s is not an id", quoted(text))
	}
	return wire.ID(n), nil
}

// logLevels are the levels of logrus without fatal and panic, which would hide
// errors, by the names that journals and people use.
var logLevels = []struct {
	name  string
	level logrus.Level
}{
	{"error", logrus.ErrorLevel}, {"warn", logrus.WarnLevel}, {"info", logrus.InfoLevel},
	{"debug", logrus.DebugLevel}, {"trace", logrus.TraceLevel},
}

func parseLogLevel(text string) (logrus.Level, error) {
	names := make([]string, len(logLevels))
	for i, l := range logLevels {
		if names[i] = l.name; text == l.name {
			return l.level, nil
		}
	}
	return 0, oneOf(text, names)
}

func parseLED(text string) (gpio.Spec, error) {
	spec, err := gpio.ParseSpec(text)
	if bad, ok := errors.AsType[*gpio.SpecError](err); ok {
		return spec, refuse(bad.Hint, "%s: %s", quoted(text), bad.Problem)
	}
	return spec, err
}

func parseKeyFile(c *Config, text string) (string, error) {
	if text == NoKey {
		return NoKey, nil
	}
	return besides(c.file, text), checkKeyFile(text)
}

func parsePriority(text string) (uint8, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > election.MaxPriority {
		return 0, refuse(fmt.Sprintf("write a number from 1 to %d, more for a board that should lead, or 0 for one that never should", election.MaxPriority),
			"%s is not from 0 to %d", text, election.MaxPriority)
	}
	return uint8(n), nil
}

// auto means the duration that follows from the heartbeat.
const auto = "auto"

func parsePreemptDelay(text string) (time.Duration, error) {
	if text == auto {
		return 0, nil
	}
	example := fmt.Sprintf(`write a duration from %s to %s, or "%s"`, tomlText(election.MinPreemptDelay), tomlText(election.MaxPreemptDelay), auto)
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, refuse(example, "%s is not a duration", quoted(text))
	}
	if err := election.CheckPreemptDelay(d); err != nil {
		return 0, refuse(example, "%v %v", d, err)
	}
	return d, nil
}

// parsePatience leaves the bounds to checkPatience, since the lower one depends on the heartbeat.
func parsePatience(text string) (time.Duration, error) {
	if text == auto {
		return 0, nil
	}
	example := fmt.Sprintf(`write a duration from a tenth of the heartbeat to %s, or "%s"`, tomlText(election.MaxPatience), auto)
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, refuse(example, "%s is not a duration", quoted(text))
	case d <= 0: // 0 stands for auto
		return 0, refuse(example, "%s is not more than nothing", text)
	}
	return d, nil
}

func parseHeartbeat(text string) (time.Duration, error) {
	example := fmt.Sprintf(`write a duration from "%v" to "%v", for example heartbeat = "%v"`,
		election.MinInterval, election.MaxInterval, election.DefaultInterval)
	d, err := time.ParseDuration(text)
	if err != nil {
		if _, numErr := strconv.ParseFloat(text, 64); numErr == nil {
			return 0, refuse(example, "%s has no unit", quoted(text))
		}
		squeezed := strings.ReplaceAll(strings.ToLower(text), " ", "")
		if d, err := time.ParseDuration(squeezed); err == nil && election.CheckInterval(d) == nil {
			example = "write heartbeat = " + Quote(squeezed)
		}
		return 0, refuse(example, "%s is not a duration", quoted(text))
	}
	if err := election.CheckInterval(d); err != nil {
		if near := d.Round(time.Millisecond); election.CheckInterval(near) == nil {
			example = "write heartbeat = " + tomlText(near)
		}
		return 0, refuse(example, "%s %v", text, err)
	}
	return d, nil
}

// parseStartGrace allows none: then checks are never called starting.
func parseStartGrace(text string) (time.Duration, error) {
	return parseBetween(text, "start_grace", 0, health.MaxStartGrace, health.DefaultStartGrace)
}

// parseBetween reads a duration from least to most.
func parseBetween(text, key string, least, most, example time.Duration) (time.Duration, error) {
	hint := fmt.Sprintf("write a duration from %q to %q, for example %s = %q", short(least), short(most), key, short(example))
	d, err := time.ParseDuration(text)
	switch _, noUnit := strconv.ParseFloat(text, 64); {
	case noUnit == nil:
		return 0, refuse(hint, "%s has no unit", quoted(text))
	case err != nil:
		return 0, refuse(hint, "%s is not a duration", quoted(text))
	case d < least:
		return 0, refuse(hint, "%s is less than %s", text, short(least))
	case d > most:
		return 0, refuse(hint, "%s is more than %s", text, short(most))
	}
	return d, nil
}

// short writes a duration without the units of which there are none.
func short(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "m0s")
	if text != d.String() {
		text += "m"
	}
	if hours, whole := strings.CutSuffix(text, "h0m"); whole {
		return hours + "h"
	}
	return text
}

func parseMulticast(text string) (netip.AddrPort, error) {
	const example = `write an IPv4 multicast address and a UDP port, for example multicast = "224.0.0.254:9254"`
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		if ip, ipErr := netip.ParseAddr(text); ipErr == nil && ip.Is4() && ip.IsMulticast() {
			return ap, refuse("write multicast = "+Quote(text+":9254"), "%s has no port", quoted(text))
		}
		return ap, refuse(example, "%s is not an address and port", quoted(text))
	}
	if err := netio.CheckGroup(ap); err != nil {
		return ap, refuse(example, "%v", err)
	}
	return ap, nil
}

// checkGroup wants ASCII: the group's name is hashed into every packet, and two
// boards must not differ in how they compose an umlaut.
func checkGroup(text string) error {
	const hint = `write 1 to 32 letters, digits, signs or inner spaces (ASCII), for example group = "kitchen"`
	for _, r := range text {
		if r < ' ' || r > '~' {
			return refuse(hint, "%s contains %q, which is not printable ASCII", quoted(text), r)
		}
	}
	return checkLabel(text, MaxGroupBytes, hint)
}

func checkName(text string) error {
	return checkPrintable(text, wire.MaxName, `write at most 32 bytes of printable text, for example name = "shelf-3"`)
}

// checkPrintable is for texts that people read.
func checkPrintable(text string, most int, hint string) error {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return refuse(hint, "%s contains %q, which cannot be printed", quoted(text), r)
		}
	}
	return checkLabel(text, most, hint)
}

func checkLabel(text string, most int, hint string) error {
	switch {
	case text == "":
		return refuse(hint, "the text is empty")
	case len(text) > most:
		return refuse(hint, "%s is %d bytes long, more than %d", quoted(text), len(text), most)
	case strings.TrimSpace(text) != text:
		return refuse(hint, "%s begins or ends with a space, which nobody sees", quoted(text))
	}
	return nil
}

// checkInterface follows the kernel's dev_valid_name: 1 to 15 bytes
// (IFNAMSIZ-1), no slash, no colon, no space, not "." or "..".
func checkInterface(text string) error {
	const hint = `write the name that "ip link" shows, for example interface = "eth0", or delete the line: then it is the one whose subnet contains the address`
	switch {
	case text == "":
		return refuse(hint, "the text is empty")
	case text == "lo":
		return refuse("write the interface on which the boards are; to try topdog on one machine run `topdog demo`",
			"no other board can be reached by %s", quoted(text))
	case len(text) > 15:
		return refuse(hint, "%s is %d bytes long; the kernel allows interface names of at most 15", quoted(text), len(text))
	case text == ".", text == "..", strings.ContainsFunc(text, func(r rune) bool {
		return r == '/' || r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}):
		return refuse(hint, "%s cannot be the name of an interface", quoted(text))
	}
	return nil
}

// checkPath refuses what surely is not the path that was meant.
func checkPath(text, hint string) error {
	switch {
	case text == "":
		return refuse(hint, "the path is empty")
	case strings.HasPrefix(text, "~"):
		return refuse(hint, `%s: "~" means nothing outside a shell`, quoted(text))
	case strings.ContainsFunc(text, unicode.IsControl):
		return refuse(hint, "%s contains a control character", quoted(text))
	case len(text) > 4095: // PATH_MAX less the final NUL
		return refuse(hint, "the path is %d bytes long, more than the 4095 that the kernel allows", len(text))
	}
	return nil
}

// checkProgram refuses what a shell would have to take apart: topdog starts the
// program itself, so that no name and no argument can mean anything else.
func checkProgram(key, text, example string) error {
	hint := "write the program with its whole path, for example " + key + " = " + Quote(example)
	if err := checkPath(text, hint); err != nil {
		return err
	}
	words := strings.Fields(text)
	switch {
	case !strings.HasPrefix(text, "/"):
		return refuse(hint, "%s is not an absolute path", quoted(text))
	case len(words) > 1:
		return refuse("write "+key+" = "+tomlList(words), "%s contains a space, and there is no shell that would split it", quoted(text))
	case words[0] != text:
		return refuse(hint, "%s begins or ends with a space, which nobody sees", quoted(text))
	}
	return nil
}

// maxSocketPath is sun_path of unix(7), 108 bytes, less the final NUL and the ".public" of the socket beside it.
const maxSocketPath = 107 - len(".public")

func checkSocket(text string) error {
	const hint = `write an absolute path, for example socket = "/run/topdog/topdog.sock"`
	if err := checkPath(text, hint); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(text, "/"):
		return refuse(hint, "%s is not an absolute path", quoted(text))
	case len(text) > maxSocketPath:
		return refuse(hint, "the path is %d bytes long; unix sockets and the name of the public one beside it allow %d", len(text), maxSocketPath)
	}
	return nil
}

func checkKeyFile(text string) error {
	const hint = `write the path of the key file, for example key_file = "/etc/topdog/key", or key_file = "none" to run without authentication`
	if _, bad := decodeHexKey(text); bad == nil {
		return refuse("put the key into a file that only root can read, and its path here; "+
			"then make a new key: this one has been in a file that others may read", "this is a key, not the path of one")
	}
	return checkPath(text, hint)
}

// oneOf checks a value that must be a word of a list.
func oneOf(text string, words []string) error {
	for _, w := range words {
		if text == w {
			return nil
		}
	}
	if near := nearest(text, words); near != "" {
		return refuse("did you mean "+Quote(near)+"?", "%s is not one of %s", quoted(text), listed(words))
	}
	return refuse("", "%s is not one of %s", quoted(text), listed(words))
}

func listed(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, ", ")
}
