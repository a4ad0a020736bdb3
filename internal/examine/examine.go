// Package examine finds out whether a board is ready: whether a daemon would start with its configuration on this machine and take part in its
// group, and what else a person should look at. What the daemon refuses, the daemon's own code is asked about.
package examine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
)

// Board is what is examined.
type Board struct {
	Config  *config.Config // without mistakes
	Path    string         // of its file
	Version string         // of this program
	// Daemon is what the daemon of this board says, or nil if none runs, and Unasked why it cannot be asked although one may run.
	Daemon  *console.Status
	Unasked error
	// StartHolder starts what has the rights; nil for somebody without them.
	StartHolder func() (*netio.Holder, error)
}

// adder adds a finding to a section of the report. The remedy is "" if the text says it, or there is nothing to do.
type adder func(topic console.Topic, s console.State, text, remedy string)

// to returns what adds findings to a section.
func to(r *console.Report, section string) adder {
	return func(topic console.Topic, s console.State, text, remedy string) {
		r.Add(section, console.Finding{Topic: topic, State: s, Text: text, Remedy: remedy})
	}
}

// listenFor is how long a board listens to its group: a leader speaks after each heartbeat interval, and every board says HELLO once a
// second, which may get lost once.
const listenFor = 2500 * time.Millisecond

// Examine adds to a report what it finds, and returns the mistakes in the files, with which no daemon starts.
func (b *Board) Examine(ctx context.Context, r *console.Report) error {
	clock := netio.NewRateMeter()
	mistakes := b.files(r)
	gpio.Init(b.Config.LED) // before the first socket is opened
	if n, fits := b.network(r); fits && b.Daemon == nil && b.Unasked == nil {
		if err := b.group(ctx, to(r, console.SectionGroup), n, mistakes == nil); err != nil {
			return err
		}
	}
	switch add := to(r, console.SectionGroup); {
	case b.Daemon != nil:
		b.daemonFound(add)
	case b.Unasked != nil && b.StartHolder != nil:
		add(console.TopicDaemon, console.StateWrong, b.Unasked.Error(), "")
	case b.Unasked != nil:
		add(console.TopicDaemon, console.StateUnknown, b.Unasked.Error(), "")
	}
	b.machine(r, clock)
	return mistakes
}

// files looks at the files that a daemon reads at its start.
func (b *Board) files(r *console.Report) (mistakes error) {
	add := to(r, console.SectionFiles)
	add(console.TopicConfiguration, console.StateRight, "no mistakes in "+b.Path, "")
	if b.Config.KeyFile == config.NoKey {
		add(console.TopicKey, console.StateLook, "none: everybody on this network can take the address", "sudo topdog init --force ADDRESS writes a configuration with a key; then copy both to the other boards, as it says")
		return nil
	}
	err := b.Config.ReadKeys()
	switch {
	case err == nil && b.unreadable():
		add(console.TopicKey, console.StateWrong, fmt.Sprintf("%s does not belong to %s, and topdog.service runs as that user, who cannot read it", b.Config.KeyFile, config.DaemonUser),
			"sudo chown "+config.DaemonUser+" "+config.ShellQuote(b.Config.KeyFile))
	case err == nil:
		add(console.TopicKey, console.StateRight, fmt.Sprintf("%s, %v", b.Config.KeyFile, b.Config.Keys.Signs), "")
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		add(console.TopicKey, console.StateUnknown, "only root and the daemon may read "+b.Config.KeyFile, "sudo topdog check")
	default:
		AddMistakes(r, console.TopicKey, err)
		return err
	}
	return nil
}

// AddMistakes adds the mistakes of a file.
func AddMistakes(r *console.Report, topic console.Topic, err error) {
	add := to(r, console.SectionFiles)
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		add(topic, console.StateWrong, err.Error(), "")
	}
	for _, m := range mistakes {
		add(topic, console.StateWrong, m.Place()+": "+m.Message, m.Hint)
	}
}

// systemdRuns is there if systemd is process 1 (sd_booted(3)).
const systemdRuns = "/run/systemd/system"

// managed reports whether systemd starts the daemon with this file.
func (b *Board) managed() bool {
	_, err := os.Stat(systemdRuns)
	return err == nil && b.Path == config.DefaultPath && unitFile() != ""
}

// unreadable reports whether the unit's user cannot read the key, which root can.
func (b *Board) unreadable() bool {
	u, err := user.Lookup(config.DaemonUser)
	if err != nil || !b.managed() {
		return false
	}
	info, err := os.Stat(b.Config.KeyFile)
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && strconv.FormatUint(uint64(owner.Uid), 10) != u.Uid
}

// network judges the network as the daemon does. It reports whether a daemon would take part.
func (b *Board) network(r *console.Report) (n daemon.Network, fits bool) {
	add := to(r, console.SectionNetwork)
	seen, err := netio.Look(netio.WatchOptions{Interface: b.Config.Interface, Floating: b.Config.Addresses[0].IP})
	if err != nil {
		add(console.TopicInterface, console.StateUnknown, err.Error(), "")
		return n, false
	}
	n = daemon.JudgeNetwork(b.Config, seen)
	switch {
	case n.Waits != "":
		add(console.TopicInterface, console.StateWrong, n.Waits, "")
		return n, false
	case n.Down != "":
		add(console.TopicInterface, console.StateWrong, n.Down, "")
		return n, false
	}
	add(console.TopicInterface, console.StateRight, fmt.Sprintf("%s, where this board is %v", n.Interface, n.Local), "")
	for _, note := range n.Notes {
		add(console.TopicInterface, console.StateLook, note, "")
	}
	if on, known := netio.PowerSave(n.Interface, n.Index); known && on {
		add(console.TopicPowerSave, console.StateLook, n.Interface+" lets its radio sleep, so heartbeats and other multicast arrive late",
			"iw dev "+n.Interface+" set power_save off, or for good: nmcli connection modify NAME wifi.powersave 2")
	}
	b.dhcp(add)
	if b.Daemon == nil {
		b.strays(add, seen)
	}
	return n, true
}

// strays tells of floating addresses that this board has although no daemon runs. One without a subnet may be what a daemon has left
// that was killed a moment ago; the kernel removes it within seconds.
func (b *Board) strays(add adder, seen netio.Snapshot) {
	for _, a := range b.Config.Addresses {
		for _, l := range seen.Local {
			if l.Prefix.Addr() == a.IP && !l.Prefix.IsSingleIP() {
				add(console.TopicAddress, console.StateLook, fmt.Sprintf("%v is on %s, and no daemon has put it there, so this board answers for it whoever leads", l.Prefix, l.Device),
					fmt.Sprintf("sudo ip addr del %v dev %s", l.Prefix, l.Device))
			}
		}
	}
}
