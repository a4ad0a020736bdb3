package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
)

const (
	// CommandTime bounds a command. The slowest, dpkg, takes about 10 s with three boards at it on two processors.
	CommandTime = 2 * time.Minute

	// answerTime is how long an answer to a ping may take.
	answerTime = time.Second
)

// Stage is a lab whose boards run topdog, on which scenes are played (scene.Stage). All that happens, happens to emulated boards; of the
// others, only the settings change.
type Stage struct {
	*Lab
	Ctx    context.Context // the scene ends with it
	Prober *observe.Prober // who has the address
	Asker  *observe.Asker  // a user of the address
	Marked time.Time       // when the scene began to count moves of the address

	began time.Time
}

// Stage begins to ask who has the address, once every interval. The stage is to be closed, and the lab is not closed with it.
func (l *Lab) Stage(ctx context.Context, interval time.Duration) (s *Stage, err error) {
	s = &Stage{Lab: l, Ctx: ctx, Marked: time.Now(), began: time.Now()}
	if s.Prober, err = l.Ask(Floating, interval); err != nil {
		return nil, err
	}
	if s.Asker, err = l.Ping(Floating); err != nil {
		s.Prober.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the asking.
func (s *Stage) Close() {
	s.Asker.Close()
	s.Prober.Close()
}

// Run runs a command in the root shell of an emulated board.
func (s *Stage) Run(n int, command string) (output string, err error) {
	b, err := s.Board(n)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(s.Ctx, CommandTime)
	defer cancel()
	return b.Run(ctx, command)
}

// Machines are the boards.
func (s *Stage) Machines() (all []int) {
	for n := range s.Natives() + len(s.Boards) {
		all = append(all, n+1)
	}
	return all
}

// Address is that of a board.
func (s *Stage) Address(n int) netip.Addr { return address(n).Addr() }

// Start starts the daemon of a board, unless it runs.
func (s *Stage) Start(n int, config []string) error {
	switch {
	case n <= s.Natives():
		return s.natives.Start(n, config)
	case len(config) > 0:
		return s.Set(n, config)
	}
	_, err := s.Run(n, "systemctl start topdog")
	return err
}

// Set changes settings of a board, whose daemon starts anew.
func (s *Stage) Set(n int, config []string) error {
	if n <= s.Natives() {
		if err := s.natives.Signal(n, scene.Daemon, scene.Terminate); err != nil {
			return err
		}
		return s.natives.Start(n, config)
	}
	var edits, old strings.Builder
	for _, setting := range config { // before the first table
		key, value, _ := strings.Cut(setting, "=")
		edits.WriteString(" -e " + quote("1i "+key+" = "+value))
		old.WriteString(" -e " + quote("/^"+key+" =/d"))
	}
	_, err := s.Run(n, "sed -i"+edits.String()+old.String()+" /etc/topdog/topdog.toml && systemctl restart topdog")
	return err
}

// signals are those of scenes, as systemctl calls them.
var signals = map[scene.Signal]string{scene.Kill: "KILL", scene.Terminate: "TERM", scene.Freeze: "STOP", scene.Thaw: "CONT"}

// Signal sends a signal to processes of a board. If its daemon dies, systemd starts it again.
func (s *Stage) Signal(n int, to scene.Processes, signal scene.Signal) error {
	whom := map[scene.Processes]string{scene.Daemon: "main", scene.Everything: "all"}[to]
	if whom == "" {
		return scene.ErrCannot
	}
	_, err := s.Run(n, "systemctl kill --kill-whom="+whom+" -s "+signals[signal]+" topdog")
	return err
}

// Power pulls the power plug of a board, or puts it back.
func (s *Stage) Power(n int, on bool) error {
	b, err := s.Board(n)
	switch {
	case err != nil:
		return err
	case on:
		return b.PowerOn(s.Ctx)
	}
	return b.PowerOff()
}

// Cable pulls the cable of a board, or puts it back.
func (s *Stage) Cable(n int, in bool) error {
	b, err := s.Board(n)
	if err != nil {
		return err
	}
	return b.Cable(in)
}

// Filter has the switch lose frames.
func (s *Stage) Filter(filters []scene.Filter) error {
	return s.Segment.Filter(cluster.Filters(filters, cluster.Election, netns.TapPort)...)
}

// Topdog gives topdog a command.
func (s *Stage) Topdog(n int, args []string) (said string, err error) {
	if n <= s.Natives() {
		return s.natives.Topdog(n, args)
	}
	return s.Run(n, "topdog "+strings.Join(args, " "))
}

// State is what a board says of itself.
func (s *Stage) State(n int) (state scene.State, err error) {
	if n <= s.Natives() {
		return s.natives.State(n)
	}
	out, err := s.Topdog(n, []string{"status", "--json"})
	// Status 1 says that nobody holds the address, and 5 that no fit board could take over, which are answers too.
	var exit *ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Status != 1 && exit.Status != 5) {
		return state, err
	}
	var status console.Status
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return state, fmt.Errorf("%s: topdog status --json said %q: %w", scene.Name(n), out, err)
	}
	return cluster.StateOf(status), nil
}

// Holders are the boards that answer for the address. An error is that of the scene, which the next line sees.
func (s *Stage) Holders() []int {
	boards, _ := Holders(s.Ctx, s.Prober, AskTime)
	return boards
}

// Answers reports whether a board answers pings to the address. They do not tell which one it is.
func (s *Stage) Answers(int) bool {
	ctx, cancel := context.WithTimeout(s.Ctx, answerTime)
	defer cancel()
	_, err := s.Asker.WaitAnswer(ctx, func(int) bool { return true })
	return err == nil
}

// Mark forgets what has happened to the address, and Seen tells what has happened since.
func (s *Stage) Mark() { s.Marked = time.Now() }

// Seen is how often another board has answered for the address than the one before. That two did at a time cannot be told: a
// board that pauses answers late.
func (s *Stage) Seen() (moves int, two bool) {
	last := 0
	for _, r := range s.Prober.Replies(s.Marked) {
		if last != 0 && r.Board != last {
			moves++
		}
		last = r.Board
	}
	return moves, false
}

// Pass waits.
func (s *Stage) Pass(d time.Duration) {
	select {
	case <-s.Ctx.Done():
	case <-time.After(d):
	}
}

// Now is how long the stage has been there.
func (s *Stage) Now() time.Duration { return time.Since(s.began) }

// Until waits until nothing is missing.
func (s *Stage) Until(limit time.Duration, missing func() string) (lack string) {
	_ = poll(s.Ctx, limit, func() (bool, error) { lack = missing(); return lack == "", nil })
	return lack
}
