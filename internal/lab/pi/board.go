package pi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// Machine is a kind of board that QEMU emulates.
type Machine struct {
	Name    string // QEMU's
	Arch    string // of the image: Debian's name
	Package string // architecture of topdog's package for it

	qemu string // program
	// gpioBase is where the registers of the GPIO block are: at 0x200000 behind
	// the start of the peripherals (BCM2835 ARM Peripherals, section 1.2.3;
	// 0x20000000 on the BCM2835, 0x3f000000 on the BCM2837).
	gpioBase uint64
	// kernel are parameters that only this machine needs.
	kernel string
	// twoPorts: the kernel's messages have a serial port of their own, the mini
	// UART, and leave the PL011 to the shell.
	twoPorts bool
}

var machines = map[string]Machine{
	"raspi3b": {
		Name: "raspi3b", Arch: "arm64", Package: "arm64",
		qemu: "qemu-system-aarch64", gpioBase: 0x3f200000,
		kernel: "console=ttyS1,115200", twoPorts: true,
	},
	// QEMU lacks the ASB block that the power driver wants: without the first
	// parameter the kernel panics.
	"raspi0": {
		Name: "raspi0", Arch: "armel", Package: "armhf",
		qemu: "qemu-system-arm", gpioBase: 0x20200000,
		kernel: "initcall_blacklist=bcm2835_power_driver_init console=ttyAMA0,115200",
	},
}

// MachineNames lists the machines that FindMachine knows.
func MachineNames() []string { return slices.Sorted(maps.Keys(machines)) }

// FindMachine returns the machine of a name.
func FindMachine(name string) (Machine, error) {
	m, ok := machines[name]
	if !ok {
		return Machine{}, fmt.Errorf("there is no machine %q: use one of %s", name, strings.Join(MachineNames(), ", "))
	}
	return m, nil
}

// Board is an emulated board with its SD card, which it keeps when it is off.
type Board struct {
	N int

	lab *Lab
	dir string
	tap string // the network device that its cable leads to
	// second is the one for the cable of a second adapter, if the board can have one; see PlugInSecond.
	second string
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

// command is QEMU's command line. Files are named relative to the
// board's directory, in which QEMU runs: the path of a unix socket has at most
// 107 bytes, and --dir may be anywhere.
func (b *Board) command() []string {
	m := b.lab.Machine
	kernel := strings.Join([]string{
		"quiet loglevel=4", m.kernel,
		"systemd.hostname=" + b.Name(),
		// systemd-network-generator(8) makes networkd's configuration of this.
		fmt.Sprintf("ip=%s:::255.255.255.0::eth0:off:1500:%s", b.Address(), b.hardwareAddr()),
	}, " ")
	command := []string{
		m.qemu, "-M", m.Name, "-name", b.Name(),
		// With a thread per emulated processor the four of a 3B cost twice the
		// time of the two that build machines have.
		"-accel", "tcg,thread=single",
		"-display", "none", "-pidfile", "qemu.pid",
		"-kernel", "kernel", "-initrd", "initrd", "-dtb", "dtb", "-append", kernel,
		// What the board writes survives a power cut of the board, but nobody
		// needs it after one of this machine.
		"-drive", "if=sd,format=raw,file=card,cache=unsafe",
		"-qmp", "unix:monitor,server=on,wait=off",
	}
	shell := "socket,id=shell,path=shell,server=on,wait=off"
	if m.twoPorts {
		command = append(command, "-chardev", shell, "-serial", "chardev:shell", "-serial", "file:console.log")
	} else {
		command = append(command, "-chardev", shell+",logfile=console.log", "-serial", "chardev:shell")
	}
	port := "1"
	if b.second != "" {
		// The controller has one port. Linux polls a hub, for which the controller interrupts the processor 1,700 times a second:
		// a board that does nothing takes 19 % of a processor of this machine then, instead of 8 %.
		command = append(command, "-device", "usb-hub,port=1")
		port = "1.1"
	}
	return append(command,
		// On a port that is named: without it QEMU adds a hub.
		"-netdev", "tap,id=cable,ifname="+b.tap+",script=no,downscript=no",
		"-device", "usb-net,port="+port+",netdev=cable,id=nic,mac="+b.hardwareAddr().String())
}

// PlugInSecond plugs a second network adapter into the board, whose cable leads to the LAN of the second path. It is there until
// the board is switched off: QEMU 7.2 crashes if it is pulled out. Linux calls it usb0, because the name eth0 is taken.
func (b *Board) PlugInSecond(ctx context.Context) error {
	m, err := b.dialMonitor(ctx)
	if err != nil {
		return err
	}
	defer m.conn.Close()
	_, err = m.execute("netdev_add", map[string]string{"type": "tap", "id": "second", "ifname": b.second, "script": "no", "downscript": "no"})
	if err == nil {
		_, err = m.execute("device_add", map[string]string{"driver": "usb-net", "port": "1.2", "netdev": "second", "id": "nic2"})
	}
	if err != nil {
		return fmt.Errorf("%s: plug in a second network adapter (on a board beside native ones only): %w", b.Name(), err)
	}
	return nil
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
	var ended <-chan error
	if !b.On() {
		_ = os.Remove(b.file("console.log"))
		ended, err = b.launch()
	}
	if err == nil {
		err = poll(ctx, bootTime, func() (bool, error) {
			select {
			case err := <-ended:
				text, _ := os.ReadFile(b.file("qemu.log"))
				return false, fmt.Errorf("QEMU ended (%v): %s", err, bytes.TrimSpace(text))
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
func (b *Board) launch() (ended <-chan error, err error) {
	log, err := os.Create(b.file("qemu.log"))
	if err != nil {
		return nil, err
	}
	command := b.command()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Stdout, c.Stderr = b.dir, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if b.lab.natives.Cluster != nil {
		c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	end := make(chan error, 1)
	b.lab.processes.Add(1)
	// It waits there for the end, too: the kernel sends the parent-death signal when the thread ends that made the child.
	b.lab.Segment.Go(c.Run, func(err error) {
		log.Close()
		end <- err
		b.lab.processes.Done()
	})
	return end, nil
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

// AwaitOff waits until a board has switched itself off.
func (b *Board) AwaitOff(ctx context.Context, limit time.Duration) error {
	if err := poll(ctx, limit, func() (bool, error) { return !b.On(), nil }); err != nil {
		return fmt.Errorf("%s has not switched itself off: %w", b.Name(), err)
	}
	return nil
}

// Cable pulls the network cable out or plugs it in, at the switch. On the board, whose network is a USB adapter,
// nothing passes any more then, but QEMU leaves the carrier on.
func (b *Board) Cable(in bool) error { return b.lab.Segment.Plug(b.tap, in) }

// Plugged tells whether the network cable is in.
func (b *Board) Plugged() bool { return b.lab.Segment.Plugged(b.tap) }
