package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/scene"
)

// TestScenes plays the scenes of internal/lab/scene in virtual time, where their times are judged. cmd/topdog plays them on boards.
func TestScenes(t *testing.T) {
	for _, name := range scene.Names() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				s, err := scene.Named(name)
				assert.NoError(t, err)
				v := &virtual{fakeLAN: l, running: map[int]*fakeBoard{}, thaw: map[int]chan struct{}{}, dir: t.TempDir()}
				err = s.Play(v, 1)
				for _, thaw := range v.thaw {
					close(thaw) // a board that stands still cannot end
				}
				assert.NoError(t, err)
			})
		})
	}
}

// virtual plays scenes on a fake LAN.
type virtual struct {
	*fakeLAN
	running map[int]*fakeBoard
	thaw    map[int]chan struct{} // of those that stand still
	dir     string                // for what the boards keep

	seen     sync.Mutex
	acquired []int // who has acquired the address since the mark, after whoever had it then
	two      bool
}

func (v *virtual) Address(board int) netip.Addr { return ownAddress(board) }

func (v *virtual) Start(board int, lines []string) error {
	dir := filepath.Join(v.dir, scene.Name(board))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cfg, err := sceneConfig(lines)
	if err != nil {
		return err
	}
	v.running[board] = v.board(board, func(c *config.Config, b *fakeBoard) {
		cfg.Name, cfg.Keys, cfg.Group, cfg.KeyFile, cfg.Socket, cfg.LogLevel = c.Name, c.Keys, c.Group, c.KeyFile, c.Socket, c.LogLevel
		*c = *cfg
		b.stateDir = dir
		withSwitch(b)
		b.onAcquire = func() { go v.hasAcquired(board) } // in the same instant, and without the lock of the board
	})
	return nil
}

func (v *virtual) hasAcquired(board int) {
	v.seen.Lock()
	defer v.seen.Unlock()
	v.acquired = append(v.acquired, board)
	v.two = v.two || len(v.holders()) > 1
}

// sceneConfig reads what a scene sets.
func sceneConfig(lines []string) (*config.Config, error) {
	groups, err := config.ParseGroups("scene", fmt.Appendf(nil, "address = %q\n%s\n", floating, strings.Join(lines, "\n")))
	if err != nil {
		return nil, err
	}
	return groups.First(), nil
}

func (v *virtual) Set(board int, lines []string) error {
	cfg, err := sceneConfig(lines)
	if err == nil {
		v.running[board].reload(func(c *config.Config) { c.ApplyLive(cfg) })
	}
	return err
}

func (v *virtual) Machines() []int { return slices.Sorted(maps.Keys(v.running)) }

// Signal: a holder that is killed ends its daemon, too.
func (v *virtual) Signal(board int, _ scene.Processes, signal scene.Signal) error {
	b := v.running[board]
	switch signal {
	case scene.Terminate:
		b.end()
	case scene.Kill:
		b.Kill()
	case scene.Freeze:
		thaw := make(chan struct{})
		v.thaw[board] = thaw
		go b.tasks.post(func() { <-thaw })
	case scene.Thaw:
		if v.thaw[board] != nil {
			close(v.thaw[board])
			delete(v.thaw, board)
		}
	}
	return nil
}

func (v *virtual) Cable(board int, in bool) error {
	v.running[board].unplugged(!in)
	return nil
}

func (v *virtual) Filter(filters []scene.Filter) error {
	v.inner.Lock()
	defer v.inner.Unlock()
	v.loses = filters
	return nil
}

func (v *virtual) Topdog(board int, args []string) (string, error) {
	b, ctx := v.running[board], context.Background()
	var lasts time.Duration
	if i := slices.Index(args, "--for"); i > 0 {
		lasts, _ = time.ParseDuration(args[i+1])
	}
	var h console.Handover
	var done console.Done
	var err error
	switch args[0] {
	case "resign":
		h, err = b.Resign(ctx)
	case "drain":
		h, err = b.Drain(ctx, console.DrainRequest{ForNs: int64(lasts), Force: slices.Contains(args, "--force")})
	case "undrain":
		done, err = b.Undrain(ctx)
	case "pause":
		done, err = b.Pause(ctx, console.PauseRequest{ForNs: int64(lasts)})
	case "unpause":
		done, err = b.Unpause(ctx)
	default:
		err = errors.New("this stage has no such command")
	}
	return h.Text + done.Text, err
}

func (v *virtual) State(board int) (scene.State, error) {
	s, err := v.running[board].Status(context.Background())
	return cluster.StateOf(s), err
}

func (v *virtual) Logged(board int, text string) (found bool) {
	b := v.running[board]
	b.get(func() {
		found = slices.ContainsFunc(b.logged, func(line string) bool { return strings.Contains(line, text) })
	})
	return found
}

// Answers is true of the one whose kernel has the address: on this LAN there are no clients.
func (v *virtual) Answers(board int) bool { return slices.Contains(v.holders(), board) }

func (v *virtual) Holders() []int { return v.holders() }

func (v *virtual) Mark() {
	v.seen.Lock()
	defer v.seen.Unlock()
	v.acquired, v.two = v.holders(), false
}

func (v *virtual) Seen() (moves int, two bool) {
	v.seen.Lock()
	defer v.seen.Unlock()
	return max(0, len(slices.Compact(slices.Clone(v.acquired)))-1), v.two
}

func (v *virtual) Pass(d time.Duration) { pass(d) }

func (v *virtual) Now() time.Duration { return time.Since(v.start) }

func (v *virtual) Until(limit time.Duration, missing func() string) (lack string) {
	look := min(limit/2, time.Millisecond)
	for passed := time.Duration(0); ; passed += look {
		if lack = missing(); lack == "" || passed >= limit {
			return lack
		}
		pass(look)
	}
}
