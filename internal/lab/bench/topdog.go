package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/election"
	"topdog/internal/console"
	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

// topdog is this repository's program, or another build of it.
type topdog struct {
	key, setting string
	heartbeat    time.Duration
	path         string // of the program, once it is built
	version      string
	other        bool // it was built before, and is a peer like others
	strict       bool // nobody answers without a majority of all boards
	checked      bool // each board has a service, and checks it
}

// otherProgram is how the report calls another build, and strictProgram this one with the algorithm
// strict, which is another promise: the goals are about neither.
const (
	otherProgram  = "other topdog"
	strictProgram = "topdog strict"
)

// beside adds to every system of topdog the same one with another build. One that is strict needs this build.
func beside(systems []system, path string) ([]system, error) {
	version, err := versionOf(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("--beside %s: %w", path, err)
	}
	var all []system
	for _, sys := range systems {
		all = append(all, sys)
		if t, ok := sys.(*topdog); ok && !t.strict {
			other := *t
			other.key, other.path, other.version, other.other = "other-"+t.key, path, version, true
			all = append(all, &other)
		}
	}
	return all, nil
}

func (s *topdog) String() string { return s.key }

func (s *topdog) info() report.System {
	program := "topdog"
	switch {
	case s.other:
		program = otherProgram
	case s.strict:
		program = strictProgram
	}
	return report.System{Key: s.key, Program: program, Version: s.version, Setting: s.setting, Interval: s.heartbeat}
}

func (s *topdog) missing() error {
	if s.checked {
		return installed("dnsmasq", "dnsmasq-base")
	}
	return nil
}

// buildTopdog builds the program as it is released, into dir.
func buildTopdog(ctx context.Context, dir string) (path, version string, err error) {
	path = filepath.Join(dir, "topdog")
	if err := cluster.Build(ctx, path); err != nil {
		return "", "", err
	}
	version, err = versionOf(ctx, path)
	return path, version, err
}

// versionOf asks a topdog for its version.
func versionOf(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return "", fmt.Errorf("ask topdog for its version: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "topdog "), nil
}

// sizeOnArm64 returns how many bytes the program has for a Raspberry Pi.
func sizeOnArm64(ctx context.Context, dir string) (uint64, error) {
	path := filepath.Join(dir, "topdog-arm64")
	if err := cluster.Build(ctx, path, "GOOS=linux", "GOARCH=arm64"); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return uint64(info.Size()), nil
}

func (s *topdog) text(b *board, v variant) string {
	var t strings.Builder
	fmt.Fprintf(&t, "address = %q\n", vip)
	t.WriteString("key_file = \"key\"\n")
	fmt.Fprintf(&t, "name = \"pi%d\"\n", b.Number)
	t.WriteString("led = \"none\"\n")
	if s.heartbeat != election.DefaultInterval {
		fmt.Fprintf(&t, "heartbeat = %q\n", s.heartbeat)
	}
	if v.preempt {
		t.WriteString("preempt = true\n")
	}
	if s.strict {
		var voters []string
		for n := range b.of {
			voters = append(voters, strconv.Quote(b.addressOf(n+1).String()))
		}
		fmt.Fprintf(&t, "algorithm = \"strict\"\nvoters = [%s]\n", strings.Join(voters, ", "))
	}
	if s.checked {
		t.WriteString(checks(b, v))
	}
	return t.String()
}

// checks are those of a board's service: one that the kernel tells when it dies, and one that notices when it
// does not answer.
func checks(b *board, v variant) string {
	if !v.five {
		return fmt.Sprintf("[[check]]\nexec = %q\n[[check]]\ndns = \"%s @127.0.0.1\"\nevery = \"100ms\"\nfall = 2\ntimeout = \"100ms\"\n",
			servicePath(b), serviceName)
	}
	var t strings.Builder
	for n := range checksASecond {
		fmt.Fprintf(&t, "[[check]]\ndns = \"%d.%s @127.0.0.1\"\n", n, serviceName)
	}
	return t.String()
}

func (s *topdog) configure(b *board, v variant) ([]string, error) {
	text := fmt.Sprintf("socket = %q\n", s.socket(b)) + s.text(b, v)
	if err := os.WriteFile(s.config(b), []byte(text), 0o644); err != nil {
		return nil, err
	}
	// One key for the group, in the form of `topdog init`.
	if err := os.WriteFile(filepath.Join(b.Dir, "key"), []byte(strings.Repeat("5e", 32)+"\n"), 0o600); err != nil {
		return nil, err
	}
	return []string{s.path, "run", "--config", s.config(b)}, nil
}

func (s *topdog) config(b *board) string { return filepath.Join(b.Dir, "topdog.toml") }
func (s *topdog) socket(b *board) string { return filepath.Join(b.Dir, "s") }

// daemon is the process that was started, and not its holder: that is there
// for the case that this one dies or freezes.
func (s *topdog) daemon(b *board, _ []int) []int { return []int{b.PID()} }

func (s *topdog) resign(b *board) (do, undo func(context.Context) error) {
	do = func(ctx context.Context) error {
		return b.command(ctx, s.path, "resign", "--config", s.config(b))
	}
	return do, nil
}

func (s *topdog) quorum(boards int) int {
	if s.strict {
		return boards/2 + 1
	}
	return 1
}

// ready wants all boards that run to follow one leader.
func (s *topdog) ready(ctx context.Context, r *rig) error {
	var leaders []string
	for _, b := range r.boards {
		if !b.Running() {
			continue
		}
		status, err := console.Dial(s.socket(b)).Status(ctx)
		if err != nil {
			return err
		}
		if !status.Held() {
			return fmt.Errorf("board %d sees no holder: %w", b.Number, errNotStable)
		}
		if s.checked && status.Grade != wire.GradePassing.String() {
			return fmt.Errorf("board %d is %s: %w", b.Number, status.Grade, errNotStable)
		}
		leaders = append(leaders, status.LeaderName)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(leaders))); len(distinct) != 1 {
		return fmt.Errorf("they follow %v: %w", distinct, errNotStable)
	}
	return nil
}

// stableFor is 30 heartbeats, in which a board learns what its network is like, and
// long enough for everybody to have said hello.
func (s *topdog) stableFor() time.Duration { return max(32*s.heartbeat, 2*time.Second) }

func (s *topdog) traffic() netns.Traffic {
	return netns.Traffic{Protocol: unix.IPPROTO_UDP, Port: wire.DefaultGroup.Port()}
}
