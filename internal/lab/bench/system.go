package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// vip is the floating address.
var vip = cluster.Address

// system is one program in one setting.
type system interface {
	fmt.Stringer
	info() report.System

	// missing says why the program can't be run on this machine, or nil.
	missing() error

	// configure writes what the board needs into its directory and returns the
	// command that runs the daemon in the foreground.
	configure(b *board, v variant) (command []string, err error)

	// text is the board's configuration for people.
	text(b *board, v variant) string

	// daemon returns those of the board's processes, by process id, that make up
	// the daemon, in the order in which they are to be killed.
	daemon(b *board, all []int) []int

	// resign returns what makes a leading board hand over by command, and what
	// undoes it when somebody else leads, if that is needed.
	resign(b *board) (do, undo func(context.Context) error)

	// quorum is how many of so many boards must run before one of them leads.
	quorum(boards int) int

	// ready returns nil when the group is as it is meant to be, as far as the
	// program tells.
	ready(ctx context.Context, r *rig) error

	// stableFor is for how long an address must have stayed where it is before the
	// group counts as stable.
	stableFor() time.Duration

	// traffic is the program's own on the wire.
	traffic() netns.Traffic
}

// variant is how a group is set up.
type variant struct {
	preempt bool // a board of higher rank takes the lead when it returns
	many    bool // five boards instead of three
	hooked  bool // a script is run when a board begins to lead
	watched bool // a hundred browsers have the boards' page open
	five    bool // the services are looked at by five checks a second, and by nothing else

	strangers int // machines on the LAN on which nothing of the system runs
}

// boards is how many there are in a group.
func (v variant) boards() int {
	if v.many {
		return 5
	}
	return 3
}

// allSystems returns all systems in the order in which tables show them.
func allSystems() []system {
	return []system{
		&topdog{key: "topdog-100ms", setting: "default", heartbeat: election.DefaultInterval},
		&topdog{key: "topdog-10ms", setting: "10 ms", heartbeat: 10 * time.Millisecond},
		&topdog{key: "topdog-strict", setting: "100 ms", heartbeat: election.DefaultInterval, strict: true},
		&keepalived{key: "keepalived-1s", setting: "default", advert: time.Second},
		&keepalived{key: "keepalived-100ms", setting: "100 ms", advert: 100 * time.Millisecond},
		&keepalived{key: "keepalived-100ms-hasty", setting: "100 ms, one missed advert", advert: 100 * time.Millisecond, adverts: 1},
		// What takes topdog H/2 and 11 ms after a pulled cable takes keepalived 3.2 adverts.
		&keepalived{key: "keepalived-20ms", setting: "20 ms", advert: 20 * time.Millisecond},
		&keepalived{key: "keepalived-10ms", setting: "10 ms", advert: 10 * time.Millisecond},
		&ucarp{key: "ucarp-1s", setting: "default", base: 1},
		&ucarp{key: "ucarp-1s-hasty", setting: "dead ratio 1", base: 1, ratio: 1, stagger: 10},
		&ucarp{key: "ucarp-100ms", setting: "100 ms", skew: 26},
		&ucarp{key: "ucarp-10ms", setting: "10 ms", skew: 3},

		// These look at a service. keepalived takes whole seconds as the interval of a script, and one is its default. So
		// its fastest setting is the shortest interval of its adverts.
		&topdog{key: "topdog-service", setting: "default, checks", heartbeat: election.DefaultInterval, checked: true},
		&keepalived{key: "keepalived-1s-process", setting: "default, track_process", advert: time.Second, track: trackProcess},
		&keepalived{key: "keepalived-1s-script", setting: "default, track_script", advert: time.Second, track: trackScript},
		&keepalived{key: "keepalived-10ms-process", setting: "10 ms, track_process", advert: 10 * time.Millisecond, track: trackProcess},
		&keepalived{key: "keepalived-10ms-script", setting: "10 ms, track_script", advert: 10 * time.Millisecond, track: trackScript},
	}
}

// served reports whether a system looks at a service, so that it runs the events of services and no others.
func served(sys system) bool {
	switch s := sys.(type) {
	case *topdog:
		return s.checked
	case *keepalived:
		return s.track != trackNothing
	}
	return false
}

// named returns those of all that have these names.
func named[T fmt.Stringer](all []T, names ...string) (list []T) {
	for _, one := range all {
		for _, name := range names {
			if one.String() == name {
				list = append(list, one)
			}
		}
	}
	return list
}

// installed returns an error that names the package of a program that is missing.
func installed(program, pkg string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	if _, err := os.Stat("/usr/sbin/" + program); err == nil {
		return nil // sbin is not in everybody's PATH
	}
	return fmt.Errorf("%s is not installed (Debian: apt install %s)", program, pkg)
}

// pathOf returns where an installed program is.
func pathOf(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	return "/usr/sbin/" + program
}

// packageVersion asks Debian's package manager, since ucarp does not tell its version.
func packageVersion(pkg string) string {
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", pkg).Output()
	if err != nil || len(out) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// errNotStable wraps what a group still lacks.
var errNotStable = errors.New("not stable")

// exampleConfig is the configuration of a group's first board, for people.
func exampleConfig(sys system) string {
	first := &cluster.Daemon{
		Host:   &netns.Host{Addr: netip.PrefixFrom(netns.Subnet.Addr().Next(), 24)},
		Number: 1, Dir: "/etc/" + sys.info().Program,
	}
	return sys.text(&board{Daemon: first, of: 3}, variant{})
}
