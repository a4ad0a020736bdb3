// Package systemd tells the service manager that topdog is ready, what it is doing, and
// that its loop still turns. The unit and the small files that a package installs lie in
// the same directory.
//
//	topdog.service               the unit
//	topdog-holder.service        what needs rights, for topdog.service
//	topdog-witness.service       the unit of a witness
//	topdog-hooks.service         runs scripts when the board begins or ceases to lead
//	topdog-leader.service        has topdog-leader.target run while the board leads
//	topdog-leave.service         hands over before the services of a board stop
//	topdog.sysusers              the user topdog, for /usr/lib/sysusers.d/topdog.conf
//	71-topdog.rules              LEDs and GPIO chips for the group gpio, for /usr/lib/udev/rules.d
//	topdog.network               networkd leaves topdog's own device alone, for /usr/lib/systemd/network/10-topdog.network
//	networkd-keep-address.conf   networkd leaves topdog's address alone; an admin has to place it
//
// Outside a unit of Type=notify all calls do nothing and succeed.
//
// The protocol is described in sd_notify(3) and sd_watchdog_enabled(3).
package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/daemon"
)

// maxStatus bounds the STATUS line, in bytes. systemd drops a whole
// notification of more than 4096 (NOTIFY_BUFFER_MAX), and `systemctl status`
// shows one line.
const maxStatus = 512

// sendTimeout is how long a message may wait for room in systemd's queue. The
// election loop sends the messages, so this is a small part of a heartbeat's interval.
const sendTimeout = 5 * time.Millisecond

// Notifier speaks to the service manager: each message is one datagram to a
// local socket. It may be used from several goroutines. No call takes longer
// than about 5 ms; see send.
type Notifier struct {
	interval time.Duration
	invalid  error // what is wrong with the watchdog's variables

	mu     sync.Mutex
	status string // the last one that systemd has
}

// New reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment,
// and leaves them there: processes that topdog starts inherit them, but
// WATCHDOG_PID is not theirs, and NotifyAccess=main makes systemd ignore them.
func New() *Notifier {
	n := &Notifier{}
	// go-systemd reads the number as an int, which on 32-bit boards ends at 35
	// minutes; a longer WatchdogSec= is reported as invalid there.
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.invalid = fmt.Errorf("the watchdog is not fed and systemd will restart topdog: WATCHDOG_USEC=%q, WATCHDOG_PID=%q: %w",
			os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), err)
	}
	n.interval = timeout / 2
	return n
}

// WatchdogInterval is how often to call Watchdog: half of the time after which
// systemd gives the process up, as sd_watchdog_enabled(3) recommends. It is 0
// if no watchdog waits for this process. Ready returns the error if the
// environment made no sense.
func (n *Notifier) WatchdogInterval() time.Duration { return n.interval }

// Watchdog tells that the process lives. Call it from the election loop, and from
// nowhere else: the watchdog is there to find a loop that is stuck, and a ticker in a
// goroutine of its own would go on telling that all is well.
func (n *Notifier) Watchdog() error { return n.send("feed the watchdog", daemon.SdNotifyWatchdog) }

// Ready tells that the daemon does its work, after the start and after a
// reload. For topdog that is when its loop turns, not when the interface is
// there: waiting for a cable is work.
func (n *Notifier) Ready() error {
	return errors.Join(n.send("tell that topdog is ready", daemon.SdNotifyReady), n.invalid)
}

// Stopping tells that the daemon is about to end.
func (n *Notifier) Stopping() error {
	return n.send("tell that topdog is stopping", daemon.SdNotifyStopping)
}

// Reloading tells that the config is being read again; Ready has to follow. It
// carries the time on the monotonic clock that systemd 253 and newer demand
// under Type=notify-reload.
func (n *Notifier) Reloading() error {
	return n.send("tell that topdog reloads", daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
}

// Status sets the line that `systemctl status` shows. It is sent only if it is
// not what systemd has already, so that a loop may call it at every turn.
// Whatever the text holds (it may name what came from the network), it stays
// one line of at most 512 bytes and cannot become another message.
func (n *Notifier) Status(text string) error {
	text = oneLine(text)
	n.mu.Lock()
	defer n.mu.Unlock()
	if text == n.status {
		return nil
	}
	if err := n.send("set the status line", "STATUS="+text); err != nil {
		return err
	}
	n.status = text
	return nil
}

// send does what go-systemd's SdNotify does, but does not wait without end. A PID 1 that
// has crashed stays there ("Freezing execution") and no longer reads. Its queue holds 512
// messages, and the next one would stop the election loop for good, some 20 minutes later.
func (n *Notifier) send(what, message string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	if err := sendTo(name, message); err != nil {
		return fmt.Errorf("%s through NOTIFY_SOCKET=%s: %w", what, name, err)
	}
	return nil
}

func sendTo(name, message string) error {
	// A name that begins with @ is in the abstract namespace; net knows that.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	// At once, if there is room. Only what has to wait gets a deadline: Go does not
	// even try once a deadline has passed, and on a busy board sendTimeout can pass
	// before the next line runs. READY=1 would be lost, and the start with it.
	if err := writeNow(conn, message); !errors.Is(err, syscall.EAGAIN) {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(message))
	return err
}

// writeNow sends a message if systemd's queue has room, and is syscall.EAGAIN if
// it has none.
func writeNow(conn *net.UnixConn, message string) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var wrote error
	err = raw.Control(func(fd uintptr) { // the socket does not block
		_, err := syscall.Write(int(fd), []byte(message))
		wrote = os.NewSyscallError("write", err)
	})
	return errors.Join(err, wrote)
}

// oneLine makes valid UTF-8 of the text, without control characters and not
// longer than maxStatus.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= maxStatus {
		return text
	}
	const dots = "…"
	end := maxStatus - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
