// Package gpio drives the one light by which people recognize the leader from across
// the room.
//
// A [Spec] names a light:
//
//	""  "none"         no LED; that is not an error
//	"GPIO17"           a line by the name the kernel gives it
//	"line:SDA1"        the same, for names that do not start with GPIO
//	"gpiochip0/17"     a line by its chip and its number on that chip
//	"GPIO17:low"       any of these three, for an LED that is lit when the line is low
//	"ACT"  "led:ACT"   one of the board's own LEDs, under /sys/class/leds
//
// [Open] turns a Spec into an [LED]. A [Blinker] shows a [Pattern] on it. A
// [Recorder] replaces it where there is no board.
//
// # How lines are driven
//
// periph.io/x/host/v3/gpioioctl drives the lines. It uses the kernel's GPIO
// character device, version 2 of its interface. It needs Linux 5.10 or newer, and
// access to /dev/gpiochip* (on Raspberry Pi OS: the group gpio). This package does
// not use the other drivers of periph. bcm283x writes to the registers without the
// kernel: it sees no other owner of a line, and leaves the line lit when the process
// dies. sysfs does the same.
//
// Much of this package works around defects of gpioioctl 3.8.5:
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
// [Options] can name a directory for notes. A reboot should empty it. Open writes a
// note there, with the light and the trigger that made a board's LED blink before.
// Close removes the note. So [Leftovers] are the lights of a process that died, and to
// open and close each of them restores it. The lights of a living process are among
// them too, but cannot be opened: the kernel gives a line to one process only, and a
// lock does the same for a board's LED.
//
// While gpioioctl looks for chips, it reports problems with single chips through the
// standard logger of package log, at most once. This package does not redirect that
// logger. A program that logs elsewhere calls log.SetOutput before Init.
//
// # Not tested
//
// The lines were tested on emulated boards (Pi Zero and Pi 3B) and against
// fakes, but not on a Pi 5, whose lines belong to the RP1 chip behind PCI Express.
// That "GPIO17" is a line of the RP1 follows from gpioioctl and the device tree. The
// LEDs under /sys/class/leds were not tested on a real board.
package gpio
