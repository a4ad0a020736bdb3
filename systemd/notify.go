// Package systemd tells the service manager that topdog is ready, what it is doing, and
// that its loop still runs. Its directory also has the units and the small files that a
// package of topdog installs:
//
//	topdog.service               the daemon
//	topdog-holder.service        does what needs privileges, for topdog.service
//	topdog-witness.service       a witness
//	topdog-hooks.service         runs scripts when the board begins or ceases to lead
//	topdog-leader.service        runs topdog-leader.target while the board leads
//	topdog-leader.target         the units that run on the leader only
//	topdog-leave.service         hands over before the services of a board stop
//	topdog-page.service          shows the group in a browser
//	topdog.sysusers              the user topdog, for /usr/lib/sysusers.d/topdog.conf
//	71-topdog.rules              LEDs and GPIO chips for the group gpio, for /usr/lib/udev/rules.d
//	topdog.network               keeps networkd from topdog's own device, for /usr/lib/systemd/network/10-topdog.network
//	networkd-keep-address.conf   keeps networkd from topdog's address; an admin has to install it
//
// Outside a unit of Type=notify all calls do nothing and succeed.
//
// The protocol is described in sd_notify(3) and sd_watchdog_enabled(3).
package systemd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// maxStatus bounds the STATUS line, in bytes. systemd drops a whole
// notification of more than 4096 (NOTIFY_BUFFER_MAX), and `systemctl status`
// shows one line.
const maxStatus = 512

// sendTimeout is how long a message may wait for room in systemd's queue. It is a small
// part of a heartbeat interval, because the election loop sends the messages.
const sendTimeout = 5 * time.Millisecond

// Notifier speaks to the service manager: each message is one datagram to a
// local socket. It may be used from several goroutines. No call takes longer
// than about 5 ms; see send.
type Notifier struct {
	interval time.Duration
	invalid  error // what is wrong with the watchdog's variables

	mu     sync.Mutex
	status string // the last one that was sent
}

// New reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment, and
// leaves them there. Processes that topdog starts inherit them. That does no harm:
// WATCHDOG_PID is not theirs, and NotifyAccess=main makes systemd ignore what they send.
func New() *Notifier {
	n := &Notifier{}
	// go-systemd reads the number as an int. On 32-bit boards that is at most 35
	// minutes, and a longer WatchdogSec= is reported as invalid.
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.invalid = fmt.Errorf("the watchdog is not fed and systemd will restart topdog: WATCHDOG_USEC=%q, WATCHDOG_PID=%q: %w",
			os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), err)
	}
	n.interval = timeout / 2
	return n
}

// WatchdogInterval returns how often to call Watchdog: half of the time after which
// systemd restarts the process, as sd_watchdog_enabled(3) recommends. It is 0
// if systemd does not watch this process. If the environment makes no sense, Ready
// returns the error.
func (n *Notifier) WatchdogInterval() time.Duration { return n.interval }

// Watchdog says that the process is alive. Call it from the election loop only: the
// watchdog is there to find a loop that is stuck, and a ticker in a goroutine of its own
// would still say that all is well.
func (n *Notifier) Watchdog() error { return n.send("feed the watchdog", daemon.SdNotifyWatchdog) }

// Ready says that the daemon does its work, after the start and after a
// reload. For topdog that is when its loop runs, not when the interface is
// up: waiting for a cable is part of its work.
func (n *Notifier) Ready() error {
	return errors.Join(n.send("tell that topdog is ready", daemon.SdNotifyReady), n.invalid)
}

// Stopping says that the daemon is about to end.
func (n *Notifier) Stopping() error {
	return n.send("tell that topdog is stopping", daemon.SdNotifyStopping)
}

// Reloading says that the configuration is being read again. A call of Ready must follow. The
// message has the time of the monotonic clock, which systemd 253 and newer require
// for Type=notify-reload.
func (n *Notifier) Reloading() error {
	return n.send("tell that topdog reloads", daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
}

// Status sets the line that `systemctl status` shows. It sends the line only if it
// has changed, so a loop may call it at every turn. Whatever is in the text (parts of it
// may come from the network), it remains one line of at most 512 bytes and cannot become
// another message.
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

// send does what go-systemd's SdNotify does, but never waits for ever. A PID 1 that has
// crashed stays in memory ("Freezing execution") and no longer reads. Its queue has room for 512
// messages, and after some 20 minutes the next one would block the election loop for good.
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

// sendTo sends a message to a socket. Only the kernel counts sendTimeout, and only while the queue is full. So a process
// that gets no processor time for longer than that still sends its message: a lost READY=1 would make systemd give up
// the start.
func sendTo(name, message string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(sendTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return os.NewSyscallError("setsockopt(SO_SNDTIMEO)", err)
	}
	// A name that begins with @ is in the abstract namespace, as package unix expects it.
	err = unix.Sendto(fd, []byte(message), unix.MSG_NOSIGNAL, &unix.SockaddrUnix{Name: name})
	if errors.Is(err, unix.EAGAIN) {
		return os.ErrDeadlineExceeded
	}
	return os.NewSyscallError("sendto", err)
}

// oneLine returns the text as valid UTF-8, without control characters and not
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
