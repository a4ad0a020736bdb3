package pi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// readyMark is what the image's last unit writes to the console.
const readyMark = "BOARD-READY"

// pollPeriod is how often a file is looked at that nobody can wait for.
const pollPeriod = 100 * time.Millisecond

// errOff: the board has no power.
var errOff = errors.New("it is off (switch it on with: power N on)")

// Board is an emulated board with its SD card, which it keeps when it is off.
type Board struct {
	N       int
	Machine Machine

	lab *Lab
	dir string
}

// boardState is what is remembered of a board, in the file "board.json".
type boardState struct {
	Machine string    `json:"machine"`
	QEMU    processID `json:"qemu"` // the zero value: off
	Pulled  bool      `json:"pulled"`
}

// Name is the board's host name: "pi1".
func (b *Board) Name() string { return "pi" + strconv.Itoa(b.N) }

// Address is the board's own address.
func (b *Board) Address() netip.Prefix { return b.lab.address(b.N) }

// hardwareAddr is that of its network adapter. b8:27:eb belongs to the
// Raspberry Pi Foundation.
func (b *Board) hardwareAddr() net.HardwareAddr {
	return net.HardwareAddr{0xb8, 0x27, 0xeb, 0, 0, byte(b.N)}
}

// Light is the line on which topdog's light is, as Deploy configures it: the
// last board has it where everybody has one, the others have one wired to a pin.
// The two are switched in different ways, and their kernels treat them
// differently when the daemon dies.
func (b *Board) Light() Pin {
	if b.N == b.lab.last() {
		return ACT
	}
	return GPIO17
}

func (b *Board) state() (s boardState, err error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "board.json"))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func (b *Board) setState(s boardState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(b.dir, "board.json"), text)
}

// flash makes the board's SD card, with files in /root, and what QEMU starts
// with, if the board has none yet.
func (b *Board) flash(image string, files []string) error {
	if _, err := b.state(); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	for from, to := range map[string]string{
		"card": "card", "initrd": "initrd", "vmlinuz": "kernel", b.Machine.Name + ".dtb": "stock.dtb",
	} {
		if err := copySparse(filepath.Join(image, from), filepath.Join(b.dir, to)); err != nil {
			return fmt.Errorf("flash the card of %s: %w", b.Name(), err)
		}
	}
	for _, f := range files {
		if err := writeInto(filepath.Join(b.dir, "card"), f); err != nil {
			return fmt.Errorf("flash the card of %s: %w", b.Name(), err)
		}
	}
	return b.setState(boardState{Machine: b.Machine.Name})
}

// On tells whether the board has power.
func (b *Board) On() bool {
	s, err := b.state()
	return err == nil && s.QEMU.runs()
}

// PowerOn switches the board on, if it is off. The boards that run already go
// ahead of it until WaitReady has seen it ready, so that they keep their heartbeats.
func (b *Board) PowerOn() error {
	fail := func(err error) error { return fmt.Errorf("switch %s on: %w", b.Name(), err) }
	s, err := b.state()
	if err != nil {
		return fail(err)
	}
	if s.QEMU.runs() {
		return nil
	}
	for _, name := range []string{"qmp", "shell", "shell.log", "console.log"} {
		if err := os.Remove(filepath.Join(b.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
	}
	if err := b.seedRandomness(); err != nil {
		return fail(err)
	}
	tap, err := b.lab.segment.Tap(b.N)
	if err != nil {
		return fail(err)
	}
	if s.QEMU, err = b.lab.launch(b.dir, b.Machine.command(b, tap)); err != nil {
		return fail(err)
	}
	if err := b.setState(s); err != nil {
		return errors.Join(fail(err), s.QEMU.kill())
	}
	err = poll(context.Background(), monitorTimeout, func() (bool, error) {
		if !s.QEMU.runs() {
			text, _ := os.ReadFile(filepath.Join(b.dir, "qemu.log"))
			return false, fmt.Errorf("QEMU ended: %s", bytes.TrimSpace(text))
		}
		_, err := os.Stat(filepath.Join(b.dir, "qmp"))
		return err == nil, nil
	})
	if err != nil {
		return fail(err)
	}
	if s.Pulled {
		return b.SetCable(context.Background(), false)
	}
	return nil
}

// seedRandomness gives the board fresh randomness, as the firmware of a real one does.
// Without it everything that asks for randomness waits for ten seconds or more.
func (b *Board) seedRandomness() error {
	stock, dtb := filepath.Join(b.dir, "stock.dtb"), filepath.Join(b.dir, "dtb")
	if err := copySparse(stock, dtb); err != nil {
		return err
	}
	return addSeed(dtb)
}

// Ready tells whether the board has reached multi-user.target.
func (b *Board) Ready() bool {
	log := "shell.log"
	if b.Machine.twoPorts {
		log = "console.log"
	}
	text, err := os.ReadFile(filepath.Join(b.dir, log))
	return err == nil && bytes.Contains(text, []byte(readyMark))
}

// WaitReady waits until the board has booted.
func (b *Board) WaitReady(ctx context.Context, limit time.Duration) error {
	err := poll(ctx, limit, func() (bool, error) {
		if !b.On() {
			return false, errOff
		}
		return b.Ready(), nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s has booted (look at %s/*.log): %w", b.Name(), b.dir, err)
	}
	s, err := b.state()
	if err != nil {
		return err
	}
	return s.QEMU.setNice(runNice)
}

// PowerOff pulls the power plug.
func (b *Board) PowerOff() error {
	s, err := b.state()
	if err != nil {
		return fmt.Errorf("switch %s off: %w", b.Name(), err)
	}
	if err := s.QEMU.kill(); err != nil {
		return fmt.Errorf("switch %s off: %w", b.Name(), err)
	}
	s.QEMU = processID{}
	return b.setState(s)
}

// Monitor connects to QEMU's monitor for this board.
func (b *Board) Monitor(ctx context.Context) (*Monitor, error) {
	if !b.On() {
		return nil, fmt.Errorf("%s: %w", b.Name(), errOff)
	}
	m, err := dialMonitor(ctx, b.dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return m, nil
}

// SetCable pulls the network cable out or plugs it in. A board that is off
// remembers it.
func (b *Board) SetCable(ctx context.Context, plugged bool) error {
	s, err := b.state()
	if err != nil {
		return err
	}
	if s.QEMU.runs() {
		m, err := b.Monitor(ctx)
		if err != nil {
			return err
		}
		defer m.Close()
		if err := m.setCable(plugged); err != nil {
			return fmt.Errorf("%s: %w", b.Name(), err)
		}
	}
	s.Pulled = !plugged
	return b.setState(s)
}

// Plugged tells whether the network cable is in.
func (b *Board) Plugged() bool {
	s, err := b.state()
	return err == nil && !s.Pulled
}

// poll asks cond until it is true, fails, or limit is over.
func poll(ctx context.Context, limit time.Duration, cond func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %s", limit))
	defer cancel()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		ok, err := cond()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
