package examine

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
)

// machine looks at the board itself: its unit, its lights and its clock.
func machine(found section, groups []*Board, clock *netio.RateMeter) {
	groups[0].unit(found)
	for i, b := range groups {
		if i == 0 || b.Config.LED != (gpio.Spec{}) {
			b.light(found)
		}
	}
	if off, measured := clock.Measure(); measured {
		switch text := daemon.ClockOff(off); {
		case text == "":
			found.right(console.TopicClock, "runs at its rate (%+.2f %%)", 100*off)
		case slices.ContainsFunc(groups, func(b *Board) bool { return len(b.Config.Voters) > 0 }):
			found.wrong(console.TopicClock, "", "%s", text)
		default:
			found.look(console.TopicClock, "look at what adjusts the clock",
				"runs %+.1f %% off its rate, which matters with the algorithm strict", 100*off)
		}
	}
}

// managed reports whether systemd is process 1 (sd_booted(3)), and has a unit that starts the daemon with this file.
func (b *Board) managed() bool {
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	units := []string{"/etc/systemd/system/topdog.service", "/usr/lib/systemd/system/topdog.service", "/lib/systemd/system/topdog.service"}
	return exists("/run/systemd/system") && b.Path == config.DefaultPath && slices.ContainsFunc(units, exists)
}

// unit reports whether the board starts the daemon when it boots.
func (b *Board) unit(found section) {
	if !b.managed() {
		return
	}
	enabled := func(unit string) bool {
		links, _ := filepath.Glob("/etc/systemd/system/*.wants/" + unit) // the pattern is right
		return len(links) > 0
	}
	masked, _ := os.Readlink("/etc/systemd/system/topdog.service") // "" if it is no link
	switch {
	case enabled("topdog-witness.service"):
		found.right(console.TopicUnit, "topdog-witness.service is enabled: this machine votes, and never leads")
	case masked == os.DevNull:
		found.look(console.TopicUnit, "sudo systemctl unmask topdog", "topdog.service is masked, so the daemon does not start")
	case !enabled("topdog.service"):
		found.look(console.TopicUnit, "sudo systemctl enable --now topdog",
			"topdog.service is not enabled, so the daemon does not start when the board boots")
	case b.Daemon == nil && b.Unasked == nil:
		found.look(console.TopicUnit, "sudo systemctl start topdog", "topdog.service is enabled, and no daemon runs")
	default:
		found.right(console.TopicUnit, "topdog.service is enabled")
	}
}

// light reports whether the light can be switched. A daemon that runs has the light to itself, and is asked.
func (b *Board) light(found section) {
	if b.Daemon != nil {
		if b.Daemon.LEDPattern != "" {
			found.right(console.TopicLight, "%s", b.Daemon.LEDText)
		}
		return // else it is a problem, or there is none
	}
	led, err := gpio.Open(b.Config.LED, gpio.Options{})
	switch {
	case err == nil:
		found.right(console.TopicLight, "%v", led)
		if err := led.Close(); err != nil {
			found.look(console.TopicLight, "", "%v", err)
		}
	case daemon.MissesNoLight(b.Config.LED, err):
		found.right(console.TopicLight, "this board has none called %v, and works without", b.Config.LED)
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		found.unknown(console.TopicLight, asRoot, "%v", err)
	default:
		found.look(console.TopicLight, "", "%v", err)
	}
}

// dhcpFiles are where a DHCP server of this board has its ranges: dnsmasq's, and Pi-hole's.
var dhcpFiles = []string{"/etc/dnsmasq.conf", "/etc/dnsmasq.d/*", "/etc/pihole/pihole.toml"}

// pool is a range of addresses that a DHCP server hands out.
type pool struct{ first, last netip.Addr }

// pools finds the ranges in the text of a configuration, of dnsmasq (dhcp-range=FIRST,LAST,…) or of Pi-hole (the section dhcp).
func pools(text string) (all []pool) {
	var section string
	pihole := map[string]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case strings.HasPrefix(line, "["):
			section = strings.TrimSpace(line)
		case section == "[dhcp]":
			pihole[key] = value
		case key == "dhcp-range":
			words := strings.Split(value, ",")
			for i := range words[:len(words)-1] {
				first, firstErr := netip.ParseAddr(strings.TrimSpace(words[i]))
				last, lastErr := netip.ParseAddr(strings.TrimSpace(words[i+1])) // a mode is there if it hands out none, or only known ones
				if firstErr == nil {
					// What is completed with the prefix of an interface (::100) is no range of addresses yet.
					if lastErr == nil && first.BitLen() == last.BitLen() && netio.CheckFloating(first) == nil {
						all = append(all, pool{first, last})
					}
					break
				}
			}
		}
	}
	first, firstErr := netip.ParseAddr(pihole["start"])
	last, lastErr := netip.ParseAddr(pihole["end"])
	if pihole["active"] == "true" && firstErr == nil && lastErr == nil {
		all = append(all, pool{first, last})
	}
	return all
}

// dhcp reports whether a DHCP server of this board hands out a floating address. A router cannot be asked for its range.
func (b *Board) dhcp(found section) {
	known := false
	for _, pattern := range dhcpFiles {
		files, _ := filepath.Glob(pattern) // the pattern is right
		for _, file := range files {
			data, _, err := config.ReadSmall(file, config.MaxFileBytes)
			if err != nil {
				continue // it is not for everybody
			}
			for _, p := range pools(string(data)) {
				known = true
				for _, a := range b.Config.Addresses {
					if !a.IP.Less(p.first) && !p.last.Less(a.IP) {
						found.look(console.TopicDHCP, "choose an address outside, or make the range smaller",
							"%v is in the range that the DHCP server of this board hands out (%v to %v, %s)", a.IP, p.first, p.last, file)
					}
				}
			}
		}
	}
	if !known {
		found.unknown(console.TopicDHCP, "check there that the floating address is not one of them",
			"only the router knows which addresses it hands out")
	}
}
