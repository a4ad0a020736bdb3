// Package examine finds out whether a board is ready: whether a daemon would start on this machine with the board's
// configuration and take part in its group, and what else a person should look at. Where the daemon would refuse
// something, its own code decides.
package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
)

// Board is what is examined: this board in one of its groups.
type Board struct {
	Config  *config.Config // without mistakes
	Path    string         // of its file
	Version string         // of this program
	// Daemon is what the daemon of this board says, or nil if none runs. Unasked says why it cannot be asked although one may
	// run.
	Daemon  *console.Status
	Unasked error
	// StartHolder starts the process that has the rights; nil for a user who may not.
	StartHolder func() (*netio.Holder, error)
}

// Name tells the group from others in a report. It is "" if there is no other.
func (b *Board) Name() string {
	if b.Config.Several {
		return b.Config.Group
	}
	return ""
}

// section is where findings go in a report. A remedy is "" if the text says it, or if there is nothing to do.
type section struct {
	report *console.Report
	name   string
	group  string // "" if it is not about one of several
}

func (s section) add(topic console.Topic, state console.State, text, remedy string) {
	s.report.Add(s.group, s.name, console.Finding{Topic: topic, State: state, Text: text, Remedy: remedy})
}

func (s section) right(topic console.Topic, format string, args ...any) {
	s.add(topic, console.StateRight, fmt.Sprintf(format, args...), "")
}

func (s section) look(topic console.Topic, remedy, format string, args ...any) {
	s.add(topic, console.StateLook, fmt.Sprintf(format, args...), remedy)
}

func (s section) wrong(topic console.Topic, remedy, format string, args ...any) {
	s.add(topic, console.StateWrong, fmt.Sprintf(format, args...), remedy)
}

func (s section) unknown(topic console.Topic, remedy, format string, args ...any) {
	s.add(topic, console.StateUnknown, fmt.Sprintf(format, args...), remedy)
}

// asRoot is the remedy for what only root may find out.
const asRoot = "sudo topdog check"

// Examine adds to a report what it finds about a board in each of its groups, and returns the mistakes in the files, with
// which no daemon starts.
func Examine(ctx context.Context, r *console.Report, groups []*Board) error {
	clock := netio.NewRateMeter()
	first := groups[0]
	mistakes := first.files(r)
	for _, b := range groups {
		b.Config.Keys = first.Config.Keys
		gpio.Init(b.Config.LED) // before the first socket is opened
	}
	for _, b := range groups {
		if err := b.examine(ctx, r, mistakes == nil); err != nil {
			return err
		}
	}
	r.Share(console.SectionNetwork)
	machine(section{report: r, name: console.SectionBoard}, groups, clock)
	return mistakes
}

// examine looks at what concerns one group. keyed says that the key can be used.
func (b *Board) examine(ctx context.Context, r *console.Report, keyed bool) error {
	name := b.Name()
	group := section{r, console.SectionGroup, name}
	network := section{r, console.SectionNetwork, name}
	n, fits := b.network(network)
	b.secondPath(network)
	if fits && b.Daemon == nil && b.Unasked == nil {
		if err := b.group(ctx, group, n, keyed); err != nil {
			return err
		}
	}
	switch {
	case b.Daemon != nil:
		b.daemonFound(group)
	case b.Unasked != nil && b.StartHolder != nil:
		group.wrong(console.TopicDaemon, "", "%v", b.Unasked)
	case b.Unasked != nil:
		group.unknown(console.TopicDaemon, "", "%v", b.Unasked)
	}
	return nil
}

// files looks at the files that a daemon reads when it starts.
func (b *Board) files(r *console.Report) (mistakes error) {
	found := section{report: r, name: console.SectionFiles}
	found.right(console.TopicConfiguration, "no mistakes in %s", b.Path)
	if b.Config.KeyFile == config.NoKey {
		found.look(console.TopicKey, "sudo topdog init --force ADDRESS writes a configuration with a key; then copy both to the other boards, as it says",
			"none: everybody on this network can take the address")
		return nil
	}
	err := config.Groups{b.Config}.ReadKeys()
	switch {
	case err == nil && b.unreadable():
		found.wrong(console.TopicKey, "sudo chown "+config.DaemonUser+" "+config.ShellQuote(b.Config.KeyFile),
			"%s does not belong to %s, and topdog.service runs as that user, who cannot read it", b.Config.KeyFile, config.DaemonUser)
	case err == nil:
		found.right(console.TopicKey, "%s, %v", b.Config.KeyFile, b.Config.Keys.Signs)
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		found.unknown(console.TopicKey, asRoot, "only root and the daemon may read %s", b.Config.KeyFile)
	default:
		AddMistakes(r, console.TopicKey, err)
		return err
	}
	return nil
}

// AddMistakes adds the mistakes of a file to a report.
func AddMistakes(r *console.Report, topic console.Topic, err error) {
	found := section{report: r, name: console.SectionFiles}
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		found.wrong(topic, "", "%v", err)
	}
	for _, m := range mistakes {
		found.wrong(topic, m.Hint, "%s: %s", m.Place(), m.Message)
	}
}

// unreadable reports whether the unit's user cannot read the key, although root can.
func (b *Board) unreadable() bool {
	uid, _, err := config.UserIDs(config.DaemonUser)
	if err != nil || !b.managed() {
		return false
	}
	info, err := os.Stat(b.Config.KeyFile)
	return err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != uid
}

// network judges the network as the daemon does. It reports whether a daemon would take part.
func (b *Board) network(found section) (n daemon.Network, fits bool) {
	seen, err := netio.Look(netio.WatchOptions{Interface: b.Config.Interface, Floating: b.Config.FirstIPv4()})
	if err != nil {
		found.unknown(console.TopicInterface, "", "%v", err)
		return n, false
	}
	n = daemon.JudgeNetwork(b.Config, seen)
	if why := cmp.Or(n.Waits, n.Down); why != "" {
		found.wrong(console.TopicInterface, "", "%s", why)
		return n, false
	}
	found.right(console.TopicInterface, "%s, where this board is %v", n.Interface, n.Local)
	for _, note := range n.Notes {
		found.look(console.TopicInterface, "", "%s", note)
	}
	powerSave(found, n)
	b.switchedOff(found, n.Interface, "/proc/sys/net/ipv6/conf")
	b.dhcp(found)
	if b.Daemon == nil {
		b.strays(found, seen)
	}
	return n, true
}

// powerSave finds Wi-Fi that sleeps.
func powerSave(found section, n daemon.Network) {
	if on, known := netio.PowerSave(n.Interface, n.Index); known && on {
		found.look(console.TopicPowerSave, "iw dev "+n.Interface+" set power_save off, or for good: nmcli connection modify NAME wifi.powersave 2",
			"%s lets its radio sleep, so heartbeats and other multicast arrive late", n.Interface)
	}
}

// secondPath looks at the second path, if there is one. A daemon takes part without it, so nothing here is wrong.
func (b *Board) secondPath(found section) {
	name := b.Config.SecondInterface
	if name == "" {
		return
	}
	seen, err := netio.Look(netio.WatchOptions{Interface: name})
	if err != nil {
		found.unknown(console.TopicSecondPath, "", "%v", err)
		return
	}
	b.judgeSecondPath(found, seen)
}

// judgeSecondPath judges a state of the interface of the second path, or says what the daemon that uses it has found.
func (b *Board) judgeSecondPath(found section, seen netio.Snapshot) {
	name := b.Config.SecondInterface
	n := daemon.JudgeSecondPath(b.Config, seen)
	local, why := n.Local.Addr().String(), cmp.Or(n.Waits, n.Down)
	if b.usesSecondPath() {
		local, why = b.Daemon.SecondPath.Address, b.Daemon.SecondPath.Text
	} else if why != "" {
		why += "; until then, this board is heard by the first path alone"
	}
	do := ""
	if b.usesSecondPath() && b.Daemon.SecondPath.State == console.SecondPathSilent {
		do = fmt.Sprintf("give each board a second interface in its configuration, let UDP port %d in on it, and have the access point pass multicast from client to client",
			b.Config.Multicast.Port())
	}
	if why != "" {
		found.look(console.TopicSecondPath, do, "%s", why)
	} else {
		found.right(console.TopicSecondPath, "%s, where this board is %s", name, local)
	}
	powerSave(found, n)
}

// usesSecondPath reports whether the daemon of this board was started with the second path of the configuration.
func (b *Board) usesSecondPath() bool {
	started := b.secondStarted()
	return started != "" && started == b.Config.SecondInterface
}

// secondStarted is the interface of the second path that the daemon of this board was started with; "" if it has none.
func (b *Board) secondStarted() string {
	if b.Daemon == nil || b.Daemon.SecondPath == nil {
		return ""
	}
	return b.Daemon.SecondPath.Interface
}

// secondPathOn names a second path by its interface, which is "" if there is none.
func secondPathOn(iface string) string {
	if iface == "" {
		return "no second path"
	}
	return "the second path " + iface
}

// switchedOff reports whether this board has no IPv6 where the kernel would need it for the floating addresses: on the
// interface, or, by default, on the device that has the addresses. settings is the directory of the kernel's settings.
func (b *Board) switchedOff(found section, iface, settings string) {
	for _, a := range b.Config.Addresses {
		if !a.IP.Is6() {
			continue
		}
		for _, of := range []string{iface, "default"} {
			text, err := os.ReadFile(filepath.Join(settings, of, "disable_ipv6"))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				found.look(console.TopicAddress, "boot without ipv6.disable=1, or delete the address",
					"this kernel has no IPv6, so this board cannot hold %v; it holds the IPv4 addresses all the same", a.IP)
				return
			case err == nil && strings.TrimSpace(string(text)) != "0":
				found.look(console.TopicAddress, "sudo sysctl net/ipv6/conf/"+of+"/disable_ipv6=0, and the same in /etc/sysctl.d, or delete the address",
					"IPv6 is switched off (net/ipv6/conf/%s/disable_ipv6), so this board cannot hold %v; it holds the IPv4 addresses all the same", of, a.IP)
				return
			}
		}
	}
}

// strays finds floating addresses that this board has although no daemon runs. A /32 or /128 does not count: a daemon that was
// killed a moment ago may have left it, and the kernel removes it within seconds.
func (b *Board) strays(found section, seen netio.Snapshot) {
	for _, a := range b.Config.Addresses {
		for _, l := range seen.Local {
			if l.Prefix.Addr() == a.IP && !l.Prefix.IsSingleIP() {
				found.look(console.TopicAddress, fmt.Sprintf("sudo ip addr del %v dev %s", l.Prefix, l.Device),
					"%v is on %s, and no daemon has put it there, so this board answers for it whoever leads", l.Prefix, l.Device)
			}
		}
	}
}
