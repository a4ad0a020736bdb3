package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"topdog/internal/check"
)

// checkKey is the key of the checks, each of which is a table.
const checkKey = "check"

// checkSettings lists the keys of a check in the order of the documentation. The kinds come first.
func checkSettings(c *check.Check) []setting {
	addWord := func(word string) {
		if c.Target == "" {
			c.Target = word
		} else {
			c.Arguments = append(c.Arguments, word)
		}
	}
	every := duration("every", between(check.MinEvery, check.MaxEvery))
	timeout := duration("timeout", between(check.MinTimeout, check.MaxEvery))
	grace := duration("grace", between(0, check.MaxGrace))
	on := false
	return []setting{
		scalar(&c.Target, checked(checkUnit), setting{
			name: check.Unit.String(), means: "the name that `systemctl list-units` shows", example: `"nginx.service"`}),
		{name: check.Exec.String(), example: `"/usr/sbin/nginx"`, takes: aText | aTable, parts: []setting{
			scalar(&c.Target, checked(checkExec), setting{
				name: "path", means: "the program with its whole path", example: `"/usr/sbin/nginx"`}),
			scalar(&c.User, checked(atMost(32)), setting{name: "user", means: "the name of a user", example: `"pihole"`}),
		}},
		scalar(&c.Target, checked(checkTCP), setting{
			name: check.TCP.String(), means: "a host and a port", example: `"127.0.0.1:443"`}),
		{name: check.HTTP.String(), example: `{ url = "https://127.0.0.1/", host = "www.example.org" }`,
			takes: aText | aTable, parts: []setting{
				scalar(&c.Target, checked(checkURL), setting{name: "url", example: `"https://127.0.0.1/health"`}),
				scalar(&c.Host, checked(checkHTTPHost), setting{
					name: "host", means: "the name under which others know the server", example: `"www.example.org"`}),
				scalar(&c.Status, addStatus(&c.Status), setting{
					name: "status", example: "[200, 302]", takes: aNumber | aList, max: 500}),
				scalar(&c.Contains, checked(atMost(256)), setting{
					name: "contains", means: "a part of the answer", example: `"Welcome"`}),
			}},
		scalar(&c.Target, parseDNS, setting{
			name: check.DNS.String(), means: "a name and the server that is asked", example: `"pi.hole @127.0.0.1"`}),
		program(addWord, setting{
			name: check.Command.String(), means: "the program with its whole path",
			example: `["/usr/local/bin/healthy"]`, filled: true}),
		scalar(&on, onlyTrue, setting{name: check.Gateway.String(), example: "true", takes: aBool}),
		scalar(&c.Title, checked(printableText(check.MaxTitle)), setting{
			name: "title", means: "at most 32 bytes of printable text", example: `"resolver"`}),
		scalar(&c.Every, every, setting{name: "every", means: fromTo(check.MinEvery, check.MaxEvery), example: `"1s"`}),
		scalar(&c.Timeout, timeout, setting{
			name: "timeout", means: fromTo(check.MinTimeout, check.MaxEvery), example: `"500ms"`}),
		scalar(&c.Rise, parseCount, setting{name: "rise", example: strconv.Itoa(check.DefaultRise), takes: aNumber}),
		scalar(&c.Fall, parseCount, setting{name: "fall", example: strconv.Itoa(check.DefaultFall), takes: aNumber}),
		choice(&c.When, check.WhenNames(), check.WhenNamed, setting{name: "when", example: Quote(check.Leading.String())}),
		scalar(&c.Grace, grace, setting{name: "grace", means: fromTo(0, check.MaxGrace), example: `"30s"`}),
	}
}

// readCheck reads one check.
func (r *reading) readCheck(t table) {
	c := check.Check{Every: check.DefaultEvery, Rise: check.DefaultRise, Fall: check.DefaultFall}
	s := r.newSection(checkKey+": ", checkSettings(&c))
	var kind entry // the key that says what is checked, and its value
	for _, e := range t.entries {
		if i := slices.Index(check.Kinds(), e.key); i >= 0 {
			if kind.key != "" && kind.key != e.key {
				s.refuse(e.key, e.at, "this check has "+kind.key+" already", "begin another [["+checkKey+"]] for it")
				continue
			}
			kind, c.Kind = e, check.Kind(i)
		}
		s.read(e)
	}
	if len(s.bad) == 0 {
		s.completeCheck(&c, kind, t.at)
	}
	if len(s.bad) > 0 {
		r.top.bad[checkKey] = true
		return
	}
	r.cfg.Checks = append(r.cfg.Checks, c)
	r.top.values[checkKey] = append(r.top.values[checkKey], t.at)
}

// completeCheck fills in the defaults that depend on other keys. It refuses values that are wrong
// together, and a check that exists already. kind is the entry that says what is checked, and at the
// place of the whole check.
func (s *section) completeCheck(c *check.Check, kind entry, at span) {
	if kind.key == "" {
		s.bad[checkKey] = true
		s.report(at, s.name+"this check does not say what is looked at",
			"write one of "+strings.Join(check.Kinds(), ", ")+`, for example unit = "nginx.service"`)
		return
	}
	placeOf := func(key string) span { return s.values[key][0] }
	if _, set := s.keys["timeout"]; !set {
		c.Timeout = c.Every
	} else if c.Timeout > c.Every {
		s.refuse("timeout", placeOf("timeout"),
			fmt.Sprintf("%v is more than every (%v), and one run ends before the next begins", c.Timeout, c.Every),
			"write at most "+Quote(short(c.Every))+", or a longer every")
	}
	if _, set := s.keys["grace"]; set && c.When != check.Leading {
		s.refuse("grace", placeOf("grace"),
			"it is counted from when a board begins to lead, and this check is judged on all boards",
			`write when = "leading" too, or delete this line; start_grace is for the start of a board`)
	} else if !set && c.When == check.Leading {
		c.Grace = check.DefaultGrace
	}
	for _, other := range s.cfg.Checks {
		untitled := other
		untitled.Title = c.Title
		switch sameName := other.String() == c.String(); {
		case sameName && c.Title != "":
			s.refuse("title", placeOf("title"), "a check above, of the same kind, is called so", "write another one")
		case sameName && other.Title != "":
			s.refuse(kind.key, kind.at, "a check above, of the same kind, has this as its title",
				"write another title there, or one here")
		case untitled.ID() == c.ID():
			s.refuse(kind.key, kind.at, "the same check stands above", "delete one of the two")
		default:
			continue
		}
		break
	}
	s.refuseFloatingTarget(c, kind)
}

// refuseFloatingTarget refuses a check of a floating address: every board would then ask the leader, even
// one whose own service is dead. Only the leader itself may ask, and not for the address of another group, which it may not have.
// A name is not resolved here; package check looks at its addresses when it connects.
func (s *section) refuseFloatingTarget(c *check.Check, kind entry) {
	if len(s.bad) > 0 || s.top.bad["address"] {
		return
	}
	var host string
	switch c.Kind {
	case check.TCP:
		host, _, _ = net.SplitHostPort(c.Target)
	case check.HTTP:
		if u, err := url.Parse(c.Target); err == nil {
			host = u.Hostname()
		}
	case check.DNS:
		_, server, _ := check.SplitDNS(c.Target)
		host, _ = serverOf(server)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || c.When == check.Leading && s.cfg.isFloating(addr) {
		return
	}
	group, whose := s.floating(addr)
	if group == nil {
		return
	}
	asked, itself, instead := "all boards would ask the leader", "127.0.0.1", `, or when = "leading" too`
	if addr.Unmap().Is6() {
		itself = "[::1]"
	}
	if len(s.all) > 1 {
		asked, instead = "boards would ask its leader", ", or make it a [["+groupCheckKey+"]] of "+quoted(group.Group)+` with when = "leading"`
	}
	s.refuse(kind.key, kind.value.at,
		fmt.Sprintf("%s is %s, so %s, and not themselves", addr, whose, asked), "write "+itself+instead)
}

// unitTypes are the suffixes of systemd's units (systemd.unit(5)).
var unitTypes = []string{
	".service", ".socket", ".target", ".mount", ".timer", ".path", ".device", ".swap", ".automount", ".scope", ".slice",
}

// checkUnit accepts the name of a unit.
func checkUnit(text string) error {
	const most = 255 // UNIT_NAME_MAX, less the final NUL
	odd := strings.ContainsFunc(text, func(r rune) bool { return !isLetterOrDigit(r) && !strings.ContainsRune(`:-_.\@`, r) })
	switch suffix := filepath.Ext(text); {
	case odd || len(text) > most || text == "":
		return fmt.Errorf("%s cannot be the name of a unit", quoted(text))
	case !slices.Contains(unitTypes, suffix) || text == suffix:
		return refuse("write "+Quote(text+".service"), "%s does not say which kind of unit it is", quoted(text))
	}
	return nil
}

func checkExec(text string) error { return checkProgram(check.Exec.String(), text) }

// checkTCP accepts a host and a port.
func checkTCP(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%s is not a host and a port", quoted(text))
	}
	return checkHostPort(host, port)
}

// checkHostPort refuses a host or a port that nobody can connect to.
func checkHostPort(host, port string) error {
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%s is not a port from 1 to 65535", quoted(port))
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.IsUnspecified():
		return refuse("write 127.0.0.1 for this board itself",
			"%s is no address that can be asked: it stands for all of them", host)
	case err == nil && addr.IsMulticast():
		return fmt.Errorf("%s is a multicast address, which belongs to no host", host)
	case err != nil && !isHostName(host):
		return fmt.Errorf("%s is neither an address nor a name", quoted(host))
	}
	return nil
}

// parseDNS reads "NAME @SERVER".
func parseDNS(text string) (string, error) {
	name, server, ok := check.SplitDNS(text)
	if !ok {
		return "", fmt.Errorf("%s is not a name and a server", quoted(text))
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	// RFC 1035, section 2.3.4
	odd := slices.ContainsFunc(labels, func(label string) bool { return label == "" || len(label) > 63 })
	if _, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + "."); err != nil || odd || len(name) > 253 {
		return "", fmt.Errorf("%s cannot be a name", quoted(name))
	}
	host, port := serverOf(server)
	return check.JoinDNS(name, server), checkHostPort(host, port)
}

// serverOf splits the address of a name server into its host and its port.
func serverOf(server string) (host, port string) {
	if host, port, err := net.SplitHostPort(server); err == nil {
		return host, port
	}
	return strings.Trim(server, "[]"), "53"
}

// checkURL refuses a URL that the check cannot ask for.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("%s is not a URL", quoted(text))
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s is asked by another protocol than http and https", quoted(text))
	case u.User != nil:
		return refuse("delete what stands in front of the @: a check is shown to everybody who asks for the status",
			"the URL contains a user's name")
	case u.Fragment != "":
		return refuse("delete what stands behind the #", "a server is not told of %s", quoted("#"+u.Fragment))
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return checkHostPort(u.Hostname(), port)
}

func checkHTTPHost(text string) error {
	host, _ := serverOf(text)
	if _, err := netip.ParseAddr(host); err != nil && !isHostName(host) {
		return fmt.Errorf("%s is no name of a host", quoted(text))
	}
	return nil
}

// addStatus returns a function that adds an HTTP status to those in a list.
func addStatus(all *[]int) func(string) ([]int, error) {
	return func(text string) ([]int, error) {
		n, err := wholeNumber(text, 100, 599)
		if err != nil || slices.Contains(*all, n) {
			return *all, err
		}
		return append(*all, n), nil
	}
}

// onlyTrue accepts true, the only value of the key gateway.
func onlyTrue(text string) (bool, error) {
	if text != "true" {
		return false, refuse("write gateway = true, or delete the check", "the default gateway is asked, or it is not")
	}
	return true, nil
}

// parseCount reads a number of successive results.
func parseCount(text string) (int, error) { return wholeNumber(text, 1, check.MaxCount) }
