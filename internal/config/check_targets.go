package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
	"golang.org/x/net/dns/dnsmessage"

	"topdog/internal/check"
)

// unitTypes are what the names of systemd's units end with (systemd.unit(5)), as far as a unit of the
// type can be active and mean something.
var unitTypes = []string{".service", ".socket", ".target", ".mount", ".timer", ".path", ".device", ".swap", ".automount", ".scope", ".slice"}

// parseUnit reads the name of a unit.
func parseUnit(c *check.Check, text string) error {
	const most = 255 // UNIT_NAME_MAX, less the final NUL
	odd := strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(`:-_.\@`, r))
	})
	known := slices.ContainsFunc(unitTypes, func(suffix string) bool { return strings.HasSuffix(text, suffix) && text != suffix })
	switch {
	case odd || len(text) > most || text == "":
		return refuse("write the name that `systemctl list-units` shows, for example \"nginx.service\"", "%s cannot be the name of a unit", quoted(text))
	case !known:
		return refuse("write "+Quote(text+".service"), "%s does not say which kind of unit it is", quoted(text))
	}
	c.Target = text
	return nil
}

// parseTCP reads a host and a port.
func parseTCP(c *check.Check, text string) error {
	const example = `write a host and a port, for example tcp = "127.0.0.1:443"`
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return refuse(example, "%s is not a host and a port", quoted(text))
	}
	c.Target = text
	return checkHostPort(host, port, example)
}

// checkHostPort refuses what nobody can connect to.
func checkHostPort(host, port, example string) error {
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return refuse(example, "%s is not a port from 1 to 65535", quoted(port))
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.IsUnspecified():
		return refuse("write 127.0.0.1 for this board itself", "%s is no address that can be asked: it stands for all of them", host)
	case err == nil && addr.IsMulticast():
		return refuse(example, "%s is a multicast address, which belongs to no host", host)
	case err != nil && !isHostName(host):
		return refuse(example, "%s is neither an address nor a name", quoted(host))
	}
	return nil
}

// isHostName reports whether text may be the name of a host. Four numbers may not: they are
// an address that somebody has misspelt.
func isHostName(text string) bool {
	const most = 253 // RFC 1035, section 2.3.4, as text
	if text == "" || len(text) > most || !strings.ContainsFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	})
}

// parseDNS reads "NAME @SERVER".
func parseDNS(c *check.Check, text string) error {
	const example = `write a name and the server that is asked, for example dns = "pi.hole @127.0.0.1"`
	name, server, ok := check.SplitDNS(text)
	if !ok {
		return refuse(example, "%s is not a name and a server", quoted(text))
	}
	if _, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + "."); err != nil || len(name) > 253 {
		return refuse(example, "%s cannot be a name", quoted(name))
	}
	for _, label := range strings.Split(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 { // RFC 1035, section 2.3.4
			return refuse(example, "%s cannot be a name", quoted(name))
		}
	}
	host, port := serverOf(server)
	c.Target = check.JoinDNS(name, server)
	return checkHostPort(host, port, example)
}

// serverOf returns the host of a name server, and its port.
func serverOf(server string) (host, port string) {
	if host, port, err := net.SplitHostPort(server); err == nil {
		return host, port
	}
	return strings.Trim(server, "[]"), "53"
}

// readExec reads the path of a program, or a table of path and user.
func (c *checkReading) readExec(v value) error {
	return c.readParts(v, "path", map[string]func(value) error{
		"path": func(v value) error {
			if err := textIn(v, &c.check.Target); err != nil {
				return err
			}
			return checkProgram("exec", v.text, "/usr/sbin/nginx")
		},
		"user": func(v value) error {
			if err := textIn(v, &c.check.User); err != nil {
				return err
			}
			return checkLabel(v.text, 32, `write the name of a user, for example user = "pihole"`)
		},
	})
}

// readHTTP reads a URL, or a table of it and of what is expected.
func (c *checkReading) readHTTP(v value) error {
	return c.readParts(v, "url", map[string]func(value) error{
		"url": func(v value) error {
			if err := textIn(v, &c.check.Target); err != nil {
				return err
			}
			return checkURL(v.text)
		},
		"host": func(v value) error {
			if err := textIn(v, &c.check.Host); err != nil {
				return err
			}
			host, _ := serverOf(v.text)
			if _, err := netip.ParseAddr(host); err != nil && !isHostName(host) {
				return refuse(`write the name under which others know the server, for example host = "www.example.org"`, "%s is no name of a host", quoted(v.text))
			}
			return nil
		},
		"contains": func(v value) error {
			if err := textIn(v, &c.check.Contains); err != nil {
				return err
			}
			return checkLabel(v.text, 256, "write a part of the answer")
		},
		"status": c.readStatus,
	})
}

// readStatus reads one status or a list of them.
func (c *checkReading) readStatus(v value) error {
	all := []value{v}
	if v.kind == unstable.Array {
		all = v.list
	}
	for _, one := range all {
		n, err := strconv.Atoi(one.text)
		if one.kind != unstable.Integer || err != nil || n < 100 || n > 599 {
			return refuse("write for example status = [200, 302]", "this is no list of numbers from 100 to 599")
		}
		if !slices.Contains(c.check.Status, n) {
			c.check.Status = append(c.check.Status, n)
		}
	}
	return nil
}

// checkURL refuses what the check cannot ask.
func checkURL(text string) error {
	const example = `write for example url = "https://127.0.0.1/health"`
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return refuse(example, "%s is not a URL", quoted(text))
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(example, "%s is asked by another protocol than http and https", quoted(text))
	case u.User != nil:
		return refuse("delete what stands in front of the @: a check is shown to everybody who asks for the status", "the URL contains a user's name")
	case u.Fragment != "":
		return refuse("delete what stands behind the #", "a server is not told of %s", quoted("#"+u.Fragment))
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return checkHostPort(u.Hostname(), port, example)
}

// readParts reads a text, which is the value of the first part, or a table of parts.
func (c *checkReading) readParts(v value, first string, parts map[string]func(value) error) error {
	if v.kind == unstable.String {
		return parts[first](v)
	}
	if v.kind != unstable.InlineTable {
		return refuse("write "+c.kind.key+" = "+checkFieldNamed(c.kind.key).example, "this is %s, but it must be text in quotes, or a table", kindInWords(v.kind))
	}
	seen := map[string]bool{}
	for _, e := range v.keys {
		set := parts[e.key]
		switch {
		case set == nil:
			return &misplaced{e.key, e.at, refuse("it takes "+strings.Join(sortedKeys(parts), ", "), "there is no such key")}
		case seen[e.key]:
			return &misplaced{e.key, e.at, refuse("delete one of the two", "it is set twice")}
		}
		seen[e.key] = true
		if err := set(e.value); err != nil {
			return &misplaced{e.key, e.value.at, err}
		}
	}
	if !seen[first] {
		return refuse("write "+c.kind.key+" = "+checkFieldNamed(c.kind.key).example, "%s is missing", first)
	}
	return nil
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// textIn stores a text.
func textIn(v value, place *string) error {
	if v.kind != unstable.String {
		return refuse("", "this is %s, but it must be text in quotes", kindInWords(v.kind))
	}
	*place = v.text
	return nil
}

// readCommand reads a program, and perhaps its arguments.
func (c *checkReading) readCommand(v value) error {
	words := []value{v}
	if v.kind == unstable.Array {
		words = v.list
	}
	switch {
	case len(words) == 0:
		return refuse(`write for example command = ["/usr/local/bin/healthy"]`, "the list is empty")
	case len(words) > MaxWords:
		return refuse(fmt.Sprintf("keep at most %d words", MaxWords), "these are %d words, more than %d", len(words), MaxWords)
	}
	for i, word := range words {
		var text string
		err := textIn(word, &text)
		switch {
		case err != nil:
			return err
		case i == 0:
			c.check.Target = text
			if err := checkProgram("command", text, "/usr/local/bin/healthy"); err != nil {
				return err
			}
			continue
		case strings.ContainsRune(text, 0):
			return refuse("", "%s contains a NUL character, which no argument of a program can", quoted(text))
		}
		c.check.Arguments = append(c.check.Arguments, text)
	}
	return nil
}

// readGateway reads true.
func (c *checkReading) readGateway(v value) error {
	if v.kind != unstable.Bool || v.text != "true" {
		return refuse("write gateway = true, or delete the check", "the default gateway is asked, or it is not")
	}
	return nil
}

// checkAim refuses a check that is aimed at a floating address: it would ask the leader from everywhere, also from
// a board whose own service is dead. A name is looked at when it is resolved.
func (c *checkReading) checkAim() {
	if c.bad || c.check.When == check.Leading || c.refused["address"] {
		return
	}
	var host string
	switch c.check.Kind {
	case check.TCP:
		host, _, _ = net.SplitHostPort(c.check.Target)
	case check.HTTP:
		u, err := url.Parse(c.check.Target)
		if err != nil {
			return
		}
		host = u.Hostname()
	case check.DNS:
		_, server, _ := check.SplitDNS(c.check.Target)
		host, _ = serverOf(server)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !slices.ContainsFunc(c.cfg.Addresses, func(a Address) bool { return a.IP == addr.Unmap() }) {
		return
	}
	c.refuse(c.kind.value.at, c.kind.key, refuse(`write 127.0.0.1, or when = "leading" too`,
		"%s is the floating address, so all boards would ask the leader, and not themselves", addr))
}
