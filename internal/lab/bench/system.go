package bench

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"golang.org/x/sys/unix"

	"topdog/election"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

// vip is the floating address, and vip6 that of groups with IPv6.
var vip, vip6 = cluster.Address, cluster.Address6

// program is one of those that are compared. Its template says what a board needs.
type program struct {
	name     string
	pkg      string // of Debian; "" for what is built here
	defaultH time.Duration
	// The group counts as stable when the address has stayed where it is for so many intervals, and so long.
	stable  int
	atLeast time.Duration
	traffic netns.Traffic // its own on the wire
}

var (
	// In 30 heartbeats a board learns what its network is like, and in two seconds everybody has said hello.
	topdog = &program{name: "topdog", defaultH: election.DefaultInterval, stable: 32, atLeast: 2 * time.Second,
		traffic: netns.Traffic{Protocol: unix.IPPROTO_UDP, Port: wire.DefaultGroup.Port()}}
	// Five intervals cover the time that a backup takes to find out about its leader.
	keepalived = &program{name: "keepalived", pkg: "keepalived", defaultH: time.Second, stable: 5, atLeast: 2 * time.Second,
		traffic: netns.Traffic{Protocol: 112}} // VRRP (RFC 9568); CARP uses it as well
	// A board that was told to demote itself does nothing for 3 s.
	ucarp = &program{name: "ucarp", pkg: "ucarp", defaultH: time.Second, stable: 5, atLeast: 4 * time.Second,
		traffic: netns.Traffic{Protocol: 112}}
)

// system is one program in one setting. Exported fields are for the templates.
type system struct {
	*program
	key     string // what the flags and the lines of the output call it
	setting string // for people; "default…" if the program is told nothing
	H       time.Duration

	IPv6    bool   // there is an IPv6 address beside the IPv4 one
	Strict  bool   // topdog: nobody answers without a majority of all boards
	Checked bool   // topdog: each board has a service, and checks it
	Two     bool   // topdog: each board is in two groups, and two boards each lead one of them
	More    string // topdog: further lines of its configuration
	// SecondPath is true if each board of topdog has a second interface, and InOneLAN if that is at the same switch as the first.
	SecondPath, InOneLAN bool
	Adverts              int    // keepalived: missed ones before the leader counts as dead; 0 is the default, 3
	Top                  int    // keepalived: the highest priority, with the others right below it; 0 spreads them below 200
	Track                string // keepalived: how it looks at the service of its board
	Base                 int    // ucarp: --advbase, seconds
	Skew                 int    // ucarp: --advskew, 1/256 s, added to the base
	Ratio                int    // ucarp: --deadratio; 0 is the default, 3
	stagger              int    // ucarp: more skew for each board of lower rank

	// The curve of which the system is a point, and what the picture calls that; see curve.go. Systems of which
	// onlyCurve is set are measured for the curve alone, if at all, unless somebody names them.
	curve, point string
	onlyCurve    bool

	Path    string // of the program, once it is known
	version string
	other   bool // another build of topdog, or of keepalived
	place   int  // where it stands in tables, if it was found by its key
	soon    bool // a test is not interested in stable groups
}

// The ways in which keepalived looks at a service. "process" stands for track_process. The kernel tells of processes in
// the first network namespace only (errno 111 in any other), so the bench tells keepalived when the service dies and
// starts: by a track_file, of which inotify tells it at once. It is no slower than track_process can be.
const (
	trackProcess = "process"
	trackScript  = "script"
)

// plain is the key of the system with which those are compared that have two of something.
const plain = "topdog-100ms"

// allSystems are all systems in the order in which tables show them.
func allSystems() []*system {
	const ms = time.Millisecond
	tracking := func(key, setting string, h time.Duration, track string) *system {
		return &system{program: keepalived, key: key, setting: setting + ", track_" + track, H: h, Track: track}
	}
	patient := func(key string, h time.Duration, patience string) *system {
		point := "patience " + strings.TrimSuffix(patience, "ms") + " ms"
		s := &system{program: topdog, key: key, setting: span(h) + ", " + point, H: h, More: "patience = \"" + patience + "\"\n",
			curve: span(h), point: point, onlyCurve: true}
		if h != topdog.defaultH {
			s.point = span(h) + ", " + point
		}
		return s
	}
	hasty := func(key string, h time.Duration, top int) *system {
		s := &system{program: keepalived, key: key, setting: span(h) + ", one missed advert", H: h, Adverts: 1, Top: top,
			curve: span(h) + ", one", onlyCurve: true}
		if top > 0 {
			s.setting += fmt.Sprintf(", priorities %d, %d, %d", top, top-1, top-2)
		}
		s.point = fmt.Sprintf("%s, 1 missed, %d", span(h), cmp.Or(top, 200))
		return s
	}
	carp := func(base, skew int) time.Duration {
		return time.Duration(base)*time.Second + time.Duration(skew)*time.Second/256
	}
	return []*system{
		{program: topdog, key: plain, setting: "default", H: 100 * ms, curve: "100 ms", point: "default"},
		{program: topdog, key: "topdog-10ms", setting: "10 ms", H: 10 * ms, curve: "10 ms", point: "10 ms"},
		{program: topdog, key: "topdog-strict", setting: "100 ms", H: 100 * ms, Strict: true},
		{program: keepalived, key: "keepalived-1s", setting: "default", H: time.Second, curve: "three", point: "default"},
		{program: keepalived, key: "keepalived-100ms", setting: "100 ms", H: 100 * ms, curve: "three", point: "100 ms"},
		{program: keepalived, key: "keepalived-100ms-hasty", setting: "100 ms, one missed advert", H: 100 * ms, Adverts: 1,
			curve: "100 ms, one", point: "100 ms, 1 missed, 200"},
		// What takes topdog without its watch H/2 and 11 ms after a pulled cable takes keepalived 3.2 adverts.
		{program: keepalived, key: "keepalived-20ms", setting: "20 ms", H: 20 * ms, curve: "three", point: "20 ms"},
		{program: keepalived, key: "keepalived-10ms", setting: "10 ms", H: 10 * ms, curve: "three", point: "10 ms"},
		{program: ucarp, key: "ucarp-1s", setting: "default", H: carp(1, 0), Base: 1, curve: "1 s", point: "default"},
		{program: ucarp, key: "ucarp-1s-hasty", setting: "dead ratio 1", H: carp(1, 0), Base: 1, Ratio: 1, stagger: 10,
			curve: "1 s", point: "dead ratio 1"},
		{program: ucarp, key: "ucarp-100ms", setting: "100 ms", H: carp(0, 26), Skew: 26},
		{program: ucarp, key: "ucarp-10ms", setting: "10 ms", H: carp(0, 3), Skew: 3},

		// What a second group costs beside one, and what a second path costs and brings. The forms have none of them.
		{program: topdog, key: "topdog-two-groups", setting: "100 ms, two groups", H: 100 * ms, Two: true, onlyCurve: true},
		{program: topdog, key: "topdog-second-path", setting: "100 ms, a second path", H: 100 * ms, SecondPath: true, onlyCurve: true},
		{program: topdog, key: "topdog-second-path-one-lan", setting: "100 ms, a second path in one LAN", H: 100 * ms,
			SecondPath: true, InOneLAN: true, onlyCurve: true},

		// The other points of the curves. How late a leader may be before another board takes over is the grace with topdog,
		// which learns none that is longer than its patience, and the skew with keepalived: (256 - priority)/256 of an advert.
		{program: topdog, key: "topdog-100ms-unwatched", setting: "100 ms, no watch", H: 100 * ms, More: "watch = \"off\"\n",
			curve: "100 ms", point: "no watch", onlyCurve: true},
		patient("topdog-100ms-100ms", 100*ms, "100ms"),
		patient("topdog-100ms-30ms", 100*ms, "30ms"),
		patient("topdog-100ms-10ms", 100*ms, "10ms"),     // it learns nothing
		patient("topdog-10ms-4ms", 10*ms, "4ms"),         // it learns nothing
		hasty("keepalived-100ms-hasty-231", 100*ms, 231), // the skew of the heir is topdog's grace, 10 ms
		hasty("keepalived-100ms-hasty-254", 100*ms, 254), // the fastest that it has
		hasty("keepalived-10ms-hasty", 10*ms, 0),
		hasty("keepalived-10ms-hasty-254", 10*ms, 254),

		// These look at a service. keepalived takes whole seconds as the interval of a script, and one is its default. So
		// its fastest setting is the shortest interval of its adverts.
		{program: topdog, key: "topdog-service", setting: "default, checks", H: 100 * ms, Checked: true},
		tracking("keepalived-1s-process", "default", time.Second, trackProcess),
		tracking("keepalived-1s-script", "default", time.Second, trackScript),
		tracking("keepalived-10ms-process", "10 ms", 10*ms, trackProcess),
		tracking("keepalived-10ms-script", "10 ms", 10*ms, trackScript),
	}
}

func (s *system) String() string { return s.key }

// programName is what tables call the program. Another build of topdog and one with the algorithm strict, which is another
// promise, are not topdog: the goals are about neither.
func (s *system) programName() string {
	switch {
	case s.other:
		return "other " + s.name
	case s.Strict:
		return "topdog strict"
	}
	return s.name
}

// title is how tables call the system.
func (s *system) title() string { return s.programName() + " " + s.setting }

// unset reports whether this is what the program does when it is told nothing but what it is to look at.
func (s *system) unset() bool { return strings.HasPrefix(s.setting, "default") }

// served reports whether it looks at a service, so that it runs the events of services and no others.
func (s *system) served() bool { return s.Checked || s.Track != "" }

// doubled reports whether its boards have two of something.
func (s *system) doubled() bool { return s.Two || s.SecondPath }

// slow reports whether it takes seconds where others take milliseconds.
func (s *system) slow() bool { return s.H >= 500*time.Millisecond }

func (s *system) stableFor() time.Duration {
	if s.soon {
		return time.Second
	}
	return max(time.Duration(s.stable)*s.H, s.atLeast)
}

// quorum is how many of so many boards must run before one of them leads.
func (s *system) quorum(boards int) int {
	if s.Strict {
		return boards/2 + 1
	}
	return 1
}

// prepare finds the program, and says what this machine lacks to run it.
func (s *system) prepare() error {
	for _, need := range []struct{ program, pkg string }{{s.name, s.pkg}, {"dnsmasq", "dnsmasq-base"}, {"dig", "bind9-dnsutils"}} {
		if need.pkg == "" || need.program == "dnsmasq" && !s.served() || need.program == "dig" && s.Track != trackScript {
			continue
		}
		if _, err := os.Stat(pathOf(need.program)); err != nil {
			return fmt.Errorf("%s is not installed (Debian: apt install %s)", need.program, need.pkg)
		}
	}
	if s.IPv6 && s.program == ucarp {
		return errors.New("ucarp has no IPv6")
	}
	if s.program == topdog || s.other {
		return nil
	}
	s.Path = pathOf(s.name)
	// ucarp does not tell its version.
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", s.pkg).Output()
	if s.version = strings.TrimSpace(string(out)); err != nil || s.version == "" {
		s.version = "unknown"
	}
	return nil
}

// pathOf returns where an installed program is: sbin is not in everybody's PATH.
func pathOf(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	return "/usr/sbin/" + program
}

// versionOf asks a topdog or a keepalived for its version.
func versionOf(ctx context.Context, of *program, path string) (string, error) {
	ask := "version"
	if of == keepalived {
		ask = "--version"
	}
	out, err := exec.CommandContext(ctx, path, ask).CombinedOutput()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 2 {
		return "", fmt.Errorf("ask %s for its version (%s %s): %q: %w", of.name, path, ask, out, cmp.Or(err, errors.ErrUnsupported))
	}
	if of == keepalived {
		return strings.TrimPrefix(words[1], "v"), nil
	}
	return strings.Join(words[1:], " "), nil
}

// beside adds to every system of topdog the same one with another build of it, or to those of keepalived if the file is
// called so. A topdog that is strict needs this build.
func beside(systems []*system, path string) (all []*system, err error) {
	of := topdog
	if filepath.Base(path) == keepalived.name {
		of = keepalived
	}
	version, err := versionOf(context.Background(), of, path)
	if err != nil {
		return nil, fmt.Errorf("--beside %s: %w", path, err)
	}
	for _, sys := range systems {
		all = append(all, sys)
		if sys.program == of && !sys.Strict {
			other := *sys
			other.key, other.Path, other.version, other.other = "other-"+sys.key, path, version, true
			all = append(all, &other)
		}
	}
	return all, nil
}

// variant is how a group is set up.
type variant struct {
	boards  int
	Preempt bool // a board of higher rank takes the lead when it returns
	Hooked  bool // a script is run when a board begins to lead
	pages   bool // a hundred browsers have the boards' page open
	Five    bool // the services are looked at by five checks a second, and by nothing else

	strangers int // machines on the LAN on which nothing of the system runs
}

// checksASecond is how many checks every board of a group runs whose cost is measured.
const checksASecond = 5

// setup is what a template is filled in with: that of one board.
type setup struct {
	*system
	variant
	Number  int
	Dir     string
	Own     netip.Addr
	VIP     netip.Addr
	VIP6    netip.Addr
	Second  netip.Addr // of the second group
	Service string     // its name
}

func newSetup(sys *system, v variant, number int, dir string) setup {
	own := netip.AddrFrom4([4]byte{10, 77, 0, byte(number)})
	return setup{system: sys, variant: v, Number: number, Dir: dir, Own: own, VIP: vip, VIP6: vip6, Second: cluster.Second, Service: serviceName}
}

// DefaultH is the interval that need not be written down.
func (s setup) DefaultH() time.Duration { return s.defaultH }

// Addresses are those of all boards.
func (s setup) Addresses() (all []netip.Addr) {
	for n := range s.boards {
		all = append(all, newSetup(s.system, s.variant, n+1, "").Own)
	}
	return all
}

// Priority spreads the boards below 200, at most 50 apart, or puts them right below the highest; the last is the highest.
func (s setup) Priority() int {
	top, apart := 200, min(50, 150/s.boards)
	if s.Top > 0 {
		top, apart = s.Top, 1
	}
	return top - apart*(s.boards-s.Number)
}

// Skewed is the skew of the board.
func (s setup) Skewed() int {
	step := s.stagger
	if s.Preempt && step == 0 {
		step = 10
	}
	return min(s.Skew+step*(s.boards-s.Number), 254)
}

// Checks are the numbers of the checks whose cost is measured.
func (s setup) Checks() []int { return []int{0, 1, 2, 3, 4}[:checksASecond] }

// Scripts are the names of those of keepalived that ask the service.
func (s setup) Scripts() (names []string) {
	switch {
	case s.Track != trackScript:
	case !s.Five:
		names = []string{"answers"}
	default:
		for n := range checksASecond {
			names = append(names, "answers"+strconv.Itoa(n+1))
		}
	}
	return names
}

//go:embed systems/*.tmpl
var templateFiles embed.FS

// templates are those of the programs, by name.
var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, p := range []*program{topdog, keepalived, ucarp} {
		t := template.New(p.name).Funcs(template.FuncMap{"pathOf": pathOf})
		all[p.name] = template.Must(t.ParseFS(templateFiles, "systems/"+p.name+".tmpl"))
	}
	return all
}()

// fill returns one of the texts of the board's program.
func (s setup) fill(name string) (string, error) {
	var text strings.Builder
	err := templates[s.name].ExecuteTemplate(&text, name, s)
	return text.String(), err
}

// write writes the files of the board.
func (s setup) write() error {
	for _, t := range templates[s.name].Templates() {
		if !strings.HasPrefix(t.Name(), "./") {
			continue
		}
		text, err := s.fill(t.Name())
		mode := os.FileMode(0o644)
		switch {
		case t.Name() == "./key":
			mode = 0o600
		case strings.HasPrefix(text, "#!"):
			mode = 0o755
		}
		if err = errors.Join(err, os.WriteFile(filepath.Join(s.Dir, t.Name()), []byte(text), mode)); err != nil {
			return fmt.Errorf("configure %s: %w", s.key, err)
		}
	}
	return nil
}

// shown is the configuration of a group's first board, for people.
func (s *system) shown() string {
	text, err := newSetup(s, variant{boards: 3}, 1, "/etc/"+s.name).fill("shown")
	if err != nil {
		return err.Error()
	}
	return text
}

// order puts the processes of a board in the order in which a crash ends them, and leaves out what is no part of the
// daemon. For topdog that is the process that was started, and not its holder, which is there for the case that this one
// dies or freezes. In keepalived the child that speaks VRRP comes first, since it would leave in good order if it saw its
// parent die.
func (s *system) order(main int, all []int) []int {
	others := without(all, func(pid int) bool { return pid == main })
	switch s.program {
	case topdog:
		return []int{main}
	case keepalived:
		return append(others, main)
	}
	return append([]int{main}, others...)
}
