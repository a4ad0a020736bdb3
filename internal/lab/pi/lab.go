// Package pi is a lab of emulated Raspberry Pis on one virtual LAN: QEMU's
// models of the boards, with Debian's kernels and systemd as process 1, the real
// driver of a BCM283x's GPIO, and an SD card that survives a power cut.
//
// What tells this from the namespaces of internal/lab/netns: topdog is installed there
// from its package as a user would, and started by systemd; and the lab looks at
// the light from outside, in the registers of the emulated chip, without asking
// anything that runs on the board.
//
// docs/emulated-boards.md says how to use it and what it cannot show.
package pi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

const (
	// maxBoards is what a machine with a handful of processors can emulate.
	maxBoards = 8

	// hostNumber and floatingNumber are the last octets of this machine's
	// address on the segment and of the address that the boards keep.
	hostNumber     = 254
	floatingNumber = 250

	// lockTimeout is how long a command waits for another one to finish.
	lockTimeout = 5 * time.Second
)

// subnet is used inside the lab's namespace only, and so by all labs.
var subnet = netip.MustParsePrefix("10.99.0.0/24")

// State is what a lab remembers, in the file "lab.json".
type State struct {
	Segment string `json:"segment"` // name of the namespace
	Machine string `json:"machine"`
	Boards  int    `json:"boards"`
}

// Lab is a lab whose state is in a directory.
type Lab struct {
	State State

	dir       string
	machine   Machine
	segment   *netns.Segment
	lock      *os.File
	temporary bool
	natives   []*Native
	cluster   *cluster.Cluster // of the natives; nil without any
	processes sync.WaitGroup   // threads that wait for a QEMU; see launch
}

// ErrDown: there is no lab in the directory.
var ErrDown = errors.New("no lab is up (start one with: up)")

// Temporary makes a lab that goes when this program does, however it ends: for
// tests. Its boards are lost if the directory is. With natives, which run the program topdog, it has so
// many of them, and the numbers of its boards come after theirs.
func Temporary(dir string, machine Machine, boards, natives int, topdog string) (*Lab, error) {
	l := &Lab{State: State{Machine: machine.Name, Boards: boards}, dir: dir, machine: machine, temporary: true}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if natives > 0 {
		if err := l.buildNatives(natives, topdog); err != nil {
			return l, err
		}
	}
	return l, l.build()
}

// Create makes a lab that outlives this program, or opens the one that is in the
// directory if it is of the same kind. The caller closes it.
func Create(dir string, machine Machine, boards int) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := Open(dir)
	if err == nil {
		if l.State.Machine != machine.Name || l.State.Boards != boards {
			err := fmt.Errorf("a lab of %d %s is up in %s: take it down first", l.State.Boards, l.State.Machine, dir)
			l.Close()
			return nil, err
		}
		return l, nil
	}
	if !errors.Is(err, ErrDown) {
		return nil, err
	}
	l = &Lab{State: State{Segment: segmentName(dir), Machine: machine.Name, Boards: boards}, dir: dir, machine: machine}
	if l.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	if err := l.build(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// segmentName is unique on this machine for a directory.
func segmentName(dir string) string {
	h := fnv.New32a()
	h.Write([]byte(dir))
	return fmt.Sprintf("pilab-%08x", h.Sum32())
}

// build makes the segment and the boards' objects.
func (l *Lab) build() error {
	if l.State.Boards < 1 || l.State.Boards > maxBoards {
		return fmt.Errorf("%d boards: must be 1 to %d", l.State.Boards, maxBoards)
	}
	if os.Geteuid() != 0 {
		return errNoRoot
	}
	var err error
	if l.State.Segment != "" {
		// An earlier lab that was not taken down may have left its own.
		if l.segment, err = netns.OpenSegment(l.State.Segment); err == nil {
			return l.save()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if l.cluster != nil {
		l.segment, err = l.cluster.LAN.Segment(l.address(hostNumber))
	} else {
		l.segment, err = netns.NewSegment(l.State.Segment, l.address(hostNumber))
	}
	if err != nil {
		return err
	}
	return l.save()
}

func (l *Lab) save() error {
	text, err := json.Marshal(l.State)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(l.dir, "lab.json"), text)
}

// Open opens the lab that Create has made in the directory. If there is none the
// error is ErrDown. Until Close nobody else can open it.
func Open(dir string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "lab.json")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; looked in %s", ErrDown, dir)
	}
	if os.Geteuid() != 0 {
		return nil, errNoRoot
	}
	l := &Lab{dir: dir}
	if l.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	if err := l.open(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lab) open() error {
	text, err := os.ReadFile(filepath.Join(l.dir, "lab.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; looked in %s", ErrDown, l.dir)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &l.State); err != nil {
		return fmt.Errorf("read %s/lab.json (remove the directory if it is broken): %w", l.dir, err)
	}
	if l.machine, err = FindMachine(l.State.Machine); err != nil {
		return err
	}
	l.segment, err = netns.OpenSegment(l.State.Segment)
	if errors.Is(err, fs.ErrNotExist) {
		// This machine was restarted: the boards are off, their cards are there.
		l.segment, err = netns.NewSegment(l.State.Segment, l.address(hostNumber))
	}
	return err
}

// lockDir keeps other commands away from the lab: two that change the same board
// at once would lose one another's changes.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(lockTimeout)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			f.Close()
			return nil, fmt.Errorf("another pilab command works in %s: %w", dir, err)
		}
		time.Sleep(pollPeriod)
	}
}

// Close lets go of the lab. A mortal one ends.
func (l *Lab) Close() error {
	var err error
	if l.temporary {
		err = l.cutAll()
	}
	if l.cluster != nil {
		err = errors.Join(err, l.cluster.Close())
	}
	if l.segment != nil {
		l.segment.Close()
	}
	if l.lock != nil {
		l.lock.Close()
	}
	return err
}

// Unlock lets other commands use the lab while this one goes on to look at it.
func (l *Lab) Unlock() {
	l.lock.Close()
	l.lock = nil
}

// cutAll switches all boards off.
func (l *Lab) cutAll() error {
	var failed []error
	for _, b := range l.Boards() {
		if b.On() {
			failed = append(failed, b.PowerOff())
		}
	}
	if l.temporary {
		l.processes.Wait()
	}
	return errors.Join(failed...)
}

// Down ends the lab's boards, exactly these, and removes their cards and the
// segment.
func (l *Lab) Down() error {
	defer l.Close()
	if err := l.cutAll(); err != nil {
		return err
	}
	for _, b := range l.Boards() {
		if err := os.RemoveAll(b.dir); err != nil {
			return err
		}
	}
	if err := l.segment.Delete(); err != nil {
		return err
	}
	return os.Remove(filepath.Join(l.dir, "lab.json"))
}

// Board returns board n.
func (l *Lab) Board(n int) (*Board, error) {
	first := len(l.natives) + 1
	if n < first || n > l.last() {
		return nil, fmt.Errorf("there is no board %d: they are %d to %d", n, first, l.last())
	}
	return l.Boards()[n-first], nil
}

// last is the highest number of a board.
func (l *Lab) last() int { return len(l.natives) + l.State.Boards }

// numberOf returns which board or native has a hardware address.
func (l *Lab) numberOf(mac []byte) (n int, ok bool) {
	for _, b := range l.Boards() {
		if bytes.Equal(mac, b.hardwareAddr()) {
			return b.N, true
		}
	}
	for _, n := range l.natives {
		if bytes.Equal(mac, n.topdog.HardwareAddr) {
			return n.N, true
		}
	}
	return 0, false
}

// Boards returns all emulated boards.
func (l *Lab) Boards() []*Board {
	boards := make([]*Board, l.State.Boards)
	for i := range boards {
		n := len(l.natives) + i + 1
		boards[i] = &Board{N: n, Machine: l.machine, lab: l, dir: filepath.Join(l.dir, fmt.Sprintf("pi%d", n))}
	}
	return boards
}

// Flash gives each board a card with the image, and with files of this machine in
// /root, unless it has a card.
func (l *Lab) Flash(image string, files ...string) error {
	for _, b := range l.Boards() {
		if err := b.flash(image, files); err != nil {
			return err
		}
	}
	return nil
}

// Segment is the LAN of the boards.
func (l *Lab) Segment() *netns.Segment { return l.segment }

// Arch is the boards' architecture, as Debian calls it.
func (l *Lab) Arch() string { return l.machine.Arch }

// Floating is the address that the boards shall keep.
func (l *Lab) Floating() netip.Addr { return l.address(floatingNumber).Addr() }

// host is this machine's address on the segment.
func (l *Lab) host() netip.Addr { return l.address(hostNumber).Addr() }

func (l *Lab) address(n int) netip.Prefix {
	a := subnet.Addr().As4()
	a[3] = byte(n)
	return netip.PrefixFrom(netip.AddrFrom4(a), subnet.Bits())
}
