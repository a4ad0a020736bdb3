package examine

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
)

// machine looks at what is no network.
func (b *Board) machine(r *console.Report, clock *netio.RateMeter) {
	add := to(r, console.SectionBoard)
	b.unit(add)
	b.light(add)
	if off, measured := clock.Measure(); measured {
		switch text := daemon.ClockOff(off); {
		case text == "":
			add(console.TopicClock, console.StateRight, fmt.Sprintf("runs at its rate (%+.2f %%)", 100*off), "")
		case len(b.Config.Voters) > 0:
			add(console.TopicClock, console.StateWrong, text, "")
		default:
			add(console.TopicClock, console.StateLook, fmt.Sprintf("runs %+.1f %% off its rate, which matters with the algorithm strict", 100*off), "look at what adjusts the clock")
		}
	}
}

// unitFile is where the unit of the daemon is; "" if it is not installed.
func unitFile() string {
	for _, directory := range []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		if path := filepath.Join(directory, "topdog.service"); exists(path) {
			return path
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// unit looks whether the board starts the daemon when it boots.
func (b *Board) unit(add adder) {
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
		add(console.TopicUnit, console.StateRight, "topdog-witness.service is enabled: this machine votes, and never leads", "")
	case masked == os.DevNull:
		add(console.TopicUnit, console.StateLook, "topdog.service is masked, so the daemon does not start", "sudo systemctl unmask topdog")
	case !enabled("topdog.service"):
		add(console.TopicUnit, console.StateLook, "topdog.service is not enabled, so the daemon does not start when the board boots", "sudo systemctl enable --now topdog")
	case b.Daemon == nil && b.Unasked == nil:
		add(console.TopicUnit, console.StateLook, "topdog.service is enabled, and no daemon runs", "sudo systemctl start topdog")
	default:
		add(console.TopicUnit, console.StateRight, "topdog.service is enabled", "")
	}
}

// light looks whether the light can be switched. The light of a daemon that runs is its own.
func (b *Board) light(add adder) {
	if b.Daemon != nil {
		if b.Daemon.LEDPattern != "" {
			add(console.TopicLight, console.StateRight, b.Daemon.LEDText, "")
		}
		return // else it is a problem, or there is none
	}
	led, err := gpio.Open(b.Config.LED, gpio.Options{})
	switch {
	case err == nil:
		add(console.TopicLight, console.StateRight, led.String(), "")
		if err := led.Close(); err != nil {
			add(console.TopicLight, console.StateLook, err.Error(), "")
		}
	case daemon.MissesNoLight(b.Config.LED, err):
		add(console.TopicLight, console.StateRight, fmt.Sprintf("this board has none called %v, and works without", b.Config.LED), "")
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		add(console.TopicLight, console.StateUnknown, err.Error(), "sudo topdog check")
	default:
		add(console.TopicLight, console.StateLook, err.Error(), "")
	}
}

// dhcpFiles are those in which a DHCP server of this board has its ranges: dnsmasq's, and Pi-hole's.
var dhcpFiles = []string{"/etc/dnsmasq.conf", "/etc/dnsmasq.d/*", "/etc/pihole/pihole.toml"}

// pool is a range that a DHCP server hands out.
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
					if lastErr == nil && first.Is4() {
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

// dhcp looks whether a DHCP server of this board hands out a floating address. That of a router cannot be asked for its range.
func (b *Board) dhcp(add adder) {
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
						add(console.TopicDHCP, console.StateLook, fmt.Sprintf("%v is in the range that the DHCP server of this board hands out (%v to %v, %s)", a.IP, p.first, p.last, file),
							"choose an address outside, or make the range smaller")
					}
				}
			}
		}
	}
	if !known {
		add(console.TopicDHCP, console.StateUnknown, "which addresses the router hands out only the router knows", "see there that the floating address is not among them")
	}
}
