package pi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
		"-monitor", "unix:monitor,server=on,wait=off",
	}
	shell := "socket,id=shell,path=shell,server=on,wait=off"
	if m.twoPorts {
		command = append(command, "-chardev", shell, "-serial", "chardev:shell", "-serial", "file:console.log")
	} else {
		command = append(command, "-chardev", shell+",logfile=console.log", "-serial", "chardev:shell")
	}
	return append(command,
		// On the controller's own port: without it QEMU adds a hub.
		"-netdev", "tap,id=cable,ifname="+b.tap+",script=no,downscript=no",
		"-device", "usb-net,port=1,netdev=cable,id=nic,mac="+b.hardwareAddr().String())
}
