// Package gpio drives the one light by which people recognize the leader from across
// the room.
//
// Three kinds of light are known, and a [Spec] names one of them:
//
//	""  "none"         no LED; that is not an error
//	"GPIO17"           a line by the name the kernel gives it
//	"line:SDA1"        the same, for names that do not start with GPIO
//	"gpiochip0/17"     a line by its chip and its number on that chip
//	"GPIO17:low"       any of these three, for an LED that is lit when the line is low
//	"ACT"  "led:ACT"   one of the board's own LEDs, under /sys/class/leds
//
// [Open] turns a Spec into an [LED], a [Blinker] shows a [Pattern] on it, and
// a [Recorder] stands in for it where there is no board.
//
// # What the lines go through
//
// Lines are driven through periph.io/x/host/v3/gpioioctl, that is the kernel's
// GPIO character device, version 2 of its interface: Linux 5.10 or newer and
// access to /dev/gpiochip* (on Raspberry Pi OS: the group gpio). The other
// drivers of periph are left out on purpose. bcm283x writes to the registers
// past the kernel, sees no other owner of a line and leaves it lit when the
// process dies. sysfs does the same.
//
// gpioioctl 3.8.5 has traps, which explain much of this package:
//
//  1. Read() on an output turns the line into an input with a pull-up, and the
//     light goes out. This package therefore never reads a line; the interface
//     through which it sees one has no such method.
//  2. After an Out() that failed, the next one skips the request and makes its
//     ioctl on file descriptor 0. This package closes a line after every
//     error, so that the next Set requests it anew.
//  3. Where /dev/gpiochip4 is a symbolic link to gpiochip0 (current Raspberry
//     Pi OS), looking for chips closes one file descriptor twice and then
//     file descriptor 0. Therefore [Init] comes first in main, before any
//     socket, and file descriptor 0 is put back if it is gone.
//  4. Halt() does not release a line. This package takes its lines from
//     gpioioctl directly, never from the registry of pins, and ends with
//     Close().
//  5. Raspberry Pi kernels keep a released line at its last level
//     (pinctrl_bcm2835.persist_gpio_outputs), so that the light of a dead
//     process stays lit. Hence the leader's pattern is a pulse, an opened LED
//     is dark, Close darkens it again, and the unit file's ExecStopPost opens
//     and closes it once more after a crash.
//
// # After a crash
//
// With a directory for notes (see [Options]), Open writes into a directory, which should be one that a
// reboot empties, what it has taken and what made a board's LED blink before;
// Close takes the note away. So [Leftovers] are the lights of a process that
// died, and opening and closing each gives it back as it was. Those of a process
// that lives are among them, but cannot be opened: a line belongs to one process
// by the kernel's rule, and one of the board's LEDs by a lock.
//
// gpioioctl reports trouble with single chips through the standard logger of
// package log, at most once, while it looks for them. This package does not
// redirect that logger; a program that logs elsewhere calls log.SetOutput
// before Init.
//
// # What was never seen
//
// The lines were tried on emulated boards (Pi Zero and Pi 3B) and against
// fakes. Nothing here has been seen on a Pi 5, whose lines belong to the RP1
// chip behind PCI Express: that "GPIO17" is the RP1's is taken from reading
// gpioioctl and the device tree. Nor were the LEDs under /sys/class/leds seen
// on a real board.
package gpio
