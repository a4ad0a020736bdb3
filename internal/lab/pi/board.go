package pi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
	"topdog/internal/lab/scene"
)

const (
	// readyMark is what the image's last unit writes to the console.
	readyMark = "BOARD-READY"

	// bootTime bounds a boot. 40 s are usual for three at once on two processors, and several times that if the machine has
	// something else to do.
	bootTime = 4 * time.Minute

	// endTime bounds the wait for a process that was killed to be gone.
	endTime = 10 * time.Second

	// runNice is the niceness of a board that runs. One that boots is a program like any other. One that
	// runs goes ahead of those, be it another board that boots or a build: a real
	// board shares its processor with nobody, and its daemon takes a pause for what it is.
	runNice = -5
)

// errOff: the board has no power.
var errOff = errors.New("it is off (switch it on with: power N on)")

// Board is an emulated board with its SD card, which it keeps when it is off.
type Board struct {
	N int

	lab *Lab
	dir string
	tap string // the network device that its cable leads to
}

// Name is the board's host name: "pi1".
func (b *Board) Name() string { return scene.Name(b.N) }

// Address is the board's own address.
func (b *Board) Address() netip.Addr { return address(b.N).Addr() }

// hardwareAddr is that of its network adapter. b8:27:eb belongs to the
// Raspberry Pi Foundation.
func (b *Board) hardwareAddr() net.HardwareAddr {
	return net.HardwareAddr{0xb8, 0x27, 0xeb, 0, 0, byte(b.N)}
}

// Light is the line on which topdog's light is, as Configure has it: the
// last board has it where everybody has one, the others have one wired to a pin.
// The two are switched in different ways, and their kernels treat them
// differently when the daemon dies.
func (b *Board) Light() Pin {
	if b == b.lab.Boards[len(b.lab.Boards)-1] {
		return ACT
	}
	return GPIO17
}

func (b *Board) file(name string) string { return filepath.Join(b.dir, name) }

// flash makes the board's SD card, with files in /root, and what QEMU starts
// with, if the board has none yet.
func (b *Board) flash(image string, files []string) error {
	if _, err := os.Stat(b.file("card")); err == nil {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	dtb := b.lab.Machine.Name + ".dtb"
	for _, c := range [][2]string{{"initrd", "initrd"}, {"vmlinuz", "kernel"}, {dtb, "dtb"}, {"card", "card.new"}} {
		// Most of a card is empty.
		if _, err := output("cp", "--sparse=always", "--reflink=auto", filepath.Join(image, c[0]), b.file(c[1])); err != nil {
			return err
		}
	}
	for _, f := range files {
		// As a card reader would. The exit status of debugfs does not tell.
		command := fmt.Sprintf("write %q %q", f, "/root/"+filepath.Base(f))
		out, err := output("debugfs", "-w", "-R", command, b.file("card.new"))
		if err == nil && !strings.Contains(out, "Allocated inode") {
			err = fmt.Errorf("debugfs: %s: %s", command, out)
		}
		if err != nil {
			return err
		}
	}
	return os.Rename(b.file("card.new"), b.file("card"))
}

// output runs a program of this machine to its end, and returns all that it says.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// process is the QEMU of a board that is on, or nil. QEMU locks the file with its number as long as it lives, so no
// other process is taken for it that has been given the number since.
func (b *Board) process() *os.Process {
	f, err := os.Open(b.file("qemu.pid"))
	if err != nil {
		return nil
	}
	defer f.Close()
	var pid int
	_, _ = fmt.Fscan(f, &pid)
	p, err := os.FindProcess(pid) // It has a descriptor, which means this process whatever its number does.
	if err != nil {
		return nil
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return nil
	}
	return p
}

// On tells whether the board has power.
func (b *Board) On() bool { return b.process() != nil }

// PowerOn switches the board on, if it is off, and waits until it has booted. The boards that run already go
// ahead of it until then, so that they keep their heartbeats.
func (b *Board) PowerOn(ctx context.Context) (err error) {
	var ended <-chan struct{}
	if !b.On() {
		_ = os.Remove(b.file("console.log"))
		ended, err = b.launch()
	}
	if err == nil {
		err = poll(ctx, bootTime, func() (bool, error) {
			select {
			case <-ended:
				text, _ := os.ReadFile(b.file("qemu.log"))
				return false, fmt.Errorf("QEMU ended: %s", bytes.TrimSpace(text))
			default:
				return b.Ready(), nil
			}
		})
	}
	if err == nil {
		err = setNice(b.process(), runNice)
	}
	if err != nil {
		return fmt.Errorf("switch %s on (look at %s/*.log): %w", b.Name(), b.dir, err)
	}
	return nil
}

// launch starts QEMU on the lab's segment, in the board's directory, with the priority of this program. In a
// temporary lab it dies with this program, whatever ends this program; otherwise it
// goes on in a session of its own.
func (b *Board) launch() (ended <-chan struct{}, err error) {
	log, err := os.Create(b.file("qemu.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := b.command()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Stdout, c.Stderr = b.dir, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if b.lab.temporary {
		c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started, end := make(chan error, 1), make(chan struct{})
	run := func() error {
		err := c.Start()
		started <- err
		// The kernel sends the parent-death signal when the thread ends
		// that made the child, so it has to stay.
		_ = c.Wait()
		return nil
	}
	b.lab.processes.Add(1)
	b.lab.Segment.Go(run, func(err error) {
		if err != nil { // it could not run
			started <- err
		}
		close(end)
		b.lab.processes.Done()
	})
	return end, <-started
}

// setNice sets the niceness of a process's session and of all its threads, of
// which each has its own in Linux. Where the kernel groups sessions (sched(7), "The
// autogroup feature"), only the former counts among programs of other sessions; a
// process that no session was ever opened above is in none of its groups (EINVAL),
// and then its threads' own counts.
func setNice(p *os.Process, nice int) error {
	if p == nil {
		return errOff
	}
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", p.Pid), strconv.AppendInt(nil, int64(nice), 10), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return netns.EachThread(p.Pid, func(id int) error {
		return os.NewSyscallError("setpriority", unix.Setpriority(unix.PRIO_PROCESS, id, nice))
	})
}

// Ready tells whether the board has reached multi-user.target.
func (b *Board) Ready() bool {
	text, err := os.ReadFile(b.file("console.log"))
	return err == nil && bytes.Contains(text, []byte(readyMark))
}

// PowerOff pulls the power plug.
func (b *Board) PowerOff() error {
	p := b.process()
	if p == nil {
		return nil
	}
	err := p.Kill()
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		err = b.AwaitOff(context.Background(), endTime)
	}
	if err != nil {
		return fmt.Errorf("switch %s off: %w", b.Name(), err)
	}
	return nil
}

// Cable pulls the network cable out or plugs it in, at the switch. On the board, whose network is a USB adapter,
// nothing passes any more then, but QEMU leaves the carrier on.
func (b *Board) Cable(in bool) error { return b.lab.Segment.Plug(b.tap, in) }

// Plugged tells whether the network cable is in.
func (b *Board) Plugged() bool { return b.lab.Segment.Plugged(b.tap) }
