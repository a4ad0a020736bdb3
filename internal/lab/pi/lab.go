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
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/scene"
)

const (
	// maxBoards is what a machine with a handful of processors can emulate.
	maxBoards = 8

	// hostNumber and floatingNumber are the last octets of this machine's
	// address on the segment and of the address that the boards keep.
	hostNumber     = 254
	floatingNumber = 250

	// pollPeriod is how often something is looked at that nobody can wait for.
	pollPeriod = 100 * time.Millisecond
)

// Floating is the address that the boards shall keep.
var Floating = address(floatingNumber).Addr()

// address is one of the subnet, which is used inside the lab's namespace only, and so by all labs.
func address(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 99, 0, byte(n)}), 24)
}

// Lab is a lab with a directory of its own.
type Lab struct {
	Machine Machine
	Segment *netns.Segment // the LAN of the boards
	Boards  []*Board       // those that are emulated

	dir       string
	natives   cluster.Stage  // of a lab that is temporary; the others have no such cluster
	processes sync.WaitGroup // threads that wait for a QEMU; see launch
}

// ErrDown says that there is no lab in the directory.
var ErrDown = errors.New("no lab is up (start one with: up)")

// errNoRoot is why nobody but root can have a lab.
var errNoRoot = errors.New("network namespaces need root: use sudo")

// Temporary makes a lab that goes when this program does, however it ends: for
// tests. Its boards are lost if the directory is. It may have boards that are native, which run the program topdog: on this
// machine, in a network namespace on the boards' LAN. Such a board has no light, and costs next to nothing. The numbers of
// the natives are lower than those of the others, and so is their rank. Beside natives, boards can have a second path.
func Temporary(dir string, machine Machine, boards, natives int, topdog string) (l *Lab, err error) {
	l = &Lab{Machine: machine, dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if l.natives.Cluster, err = cluster.New(max(natives, 1)); err != nil { // a LAN has at least one
		return nil, err
	}
	for n := 1; n <= natives && err == nil; n++ {
		var t *cluster.Topdog
		t, err = l.natives.NewTopdog(cluster.Program{Path: topdog}, n, cluster.Settings{
			"address":   cluster.Quote(Floating.String()),
			"heartbeat": cluster.Quote(heartbeat.String()),
		})
		if err == nil {
			l.natives.Boards = append(l.natives.Boards, t)
			err = t.SetAddress(address(n))
		}
	}
	if err == nil && natives > 0 {
		err = l.natives.LAN.AddSecondPath(false)
	}
	if err == nil {
		l.Segment, err = l.natives.LAN.Segment(address(hostNumber))
	}
	if err == nil {
		err = l.plugIn(boards)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Natives is how many of the boards are native.
func (l *Lab) Natives() int { return len(l.natives.Boards) }

// Native is a native board.
func (l *Lab) Native(n int) *cluster.Topdog { return l.natives.Boards[n-1] }

// Create makes a lab that outlives this program, or opens the one that is in the
// directory if it is of the same kind.
func Create(dir string, machine Machine, boards int) (*Lab, error) {
	if boards < 1 || boards > maxBoards {
		return nil, fmt.Errorf("%d boards: must be 1 to %d", boards, maxBoards)
	}
	return open(dir, fmt.Sprintln(machine.Name, boards))
}

// Open opens the lab that Create has made in the directory. If there is none the
// error is ErrDown.
func Open(dir string) (*Lab, error) { return open(dir, "") }

// open opens a lab. Of what kind it is says the file "lab". What its boards are like shows in their own directories, and
// whether their cables are plugged in at the switch. If there is no lab it makes one, if that is wanted.
func open(dir, wanted string) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, errNoRoot
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: dir}
	text, err := os.ReadFile(l.file())
	switch {
	case wanted != "" && errors.Is(err, fs.ErrNotExist):
		text, err = []byte(wanted), os.WriteFile(l.file(), []byte(wanted), 0o644)
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w; looked in %s", ErrDown, dir)
	case wanted != "" && wanted != string(text):
		err = fmt.Errorf("another lab is up in %s, of this machine and number of boards: %s; take it down first", dir, text)
	}
	if err != nil {
		return nil, err
	}
	var machine string
	var boards int
	if _, err := fmt.Sscan(string(text), &machine, &boards); err != nil {
		return nil, fmt.Errorf("read %s, which is %q (remove the directory if it is broken): %w", l.file(), text, err)
	}
	if l.Machine, err = FindMachine(machine); err != nil {
		return nil, err
	}
	l.Segment, err = netns.OpenSegment(l.SegmentName())
	if errors.Is(err, fs.ErrNotExist) {
		// It is new, or this machine was restarted: the boards are off then, and their cards are there.
		l.Segment, err = netns.NewSegment(l.SegmentName(), address(hostNumber))
	}
	if err == nil {
		err = l.plugIn(boards)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) file() string { return filepath.Join(l.dir, "lab") }

// SegmentName is the name of the boards' namespace: unique on this machine for a directory.
func (l *Lab) SegmentName() string {
	h := fnv.New32a()
	h.Write([]byte(l.dir))
	return fmt.Sprintf("pilab-%08x", h.Sum32())
}

// plugIn makes the objects of the boards, and a cable for each.
func (l *Lab) plugIn(boards int) error {
	for range boards {
		n := l.Natives() + len(l.Boards) + 1
		tap, err := l.Segment.Tap(n)
		if err != nil {
			return err
		}
		var second string
		if l.Natives() > 0 {
			if second, err = l.Segment.SecondTap(n); err != nil {
				return err
			}
		}
		l.Boards = append(l.Boards, &Board{N: n, lab: l, dir: filepath.Join(l.dir, scene.Name(n)), tap: tap, second: second})
	}
	return nil
}

// Lock keeps other commands away from what the file stands for until it is closed: two that make the same image or card
// at once would spoil one another's.
func Lock(path string, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = poll(context.Background(), patience, func() (bool, error) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("another pilab command has locked %s: %w", path, err)
	}
	return f, nil
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

// Close lets go of the lab. A temporary one ends.
func (l *Lab) Close() (err error) {
	if l.natives.Cluster != nil {
		err = l.cutAll()
		l.processes.Wait()
		err = errors.Join(err, l.natives.Close())
	}
	if l.Segment != nil {
		l.Segment.Close()
	}
	return err
}

// cutAll switches all boards off.
func (l *Lab) cutAll() error {
	var failed []error
	for _, b := range l.Boards {
		failed = append(failed, b.PowerOff())
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
	for _, b := range l.Boards {
		if err := os.RemoveAll(b.dir); err != nil {
			return err
		}
	}
	if err := l.Segment.Delete(); err != nil {
		return err
	}
	return os.Remove(l.file())
}

// Boot gives each board a card with the image, and with files of this machine in /root, unless it has a card. It switches
// all of them on, and waits until they have booted.
func (l *Lab) Boot(ctx context.Context, image string, files ...string) error {
	for _, b := range l.Boards {
		if err := b.flash(image, files); err != nil {
			return fmt.Errorf("flash the card of %s: %w", b.Name(), err)
		}
	}
	return l.Each(func(b *Board) error { return b.PowerOn(ctx) })
}

// Each does something with all boards at the same time.
func (l *Lab) Each(do func(*Board) error) error {
	var g errgroup.Group
	for _, b := range l.Boards {
		g.Go(func() error { return do(b) })
	}
	return g.Wait()
}

// Board returns board n.
func (l *Lab) Board(n int) (*Board, error) {
	first := l.Natives() + 1
	if i := n - first; i >= 0 && i < len(l.Boards) {
		return l.Boards[i], nil
	}
	return nil, fmt.Errorf("there is no board %d: they are %d to %d", n, first, l.Natives()+len(l.Boards))
}
