package pi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// monitorTimeout bounds one exchange with QEMU's monitor. It takes less than a
// millisecond on an idle machine; the bound is for one that is overloaded.
const monitorTimeout = 20 * time.Second

// prompt is what QEMU's monitor says when it waits for a command.
const prompt = "(qemu) "

// monitor speaks to QEMU's monitor as a person would. It is the view from outside:
// the emulated board has no part in an answer. QEMU serves one client at a time.
type monitor struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialMonitor connects to QEMU's monitor for this board.
func (b *Board) dialMonitor(ctx context.Context) (*monitor, error) {
	if !b.On() {
		return nil, fmt.Errorf("%s: %w", b.Name(), errOff)
	}
	conn, err := b.dial(ctx, "monitor")
	if err != nil {
		return nil, fmt.Errorf("%s: connect to QEMU's monitor: %w", b.Name(), err)
	}
	m := &monitor{conn, bufio.NewReader(conn)}
	if _, err := m.answer(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: wait for QEMU's monitor (is another pilab command using it?): %w", b.Name(), err)
	}
	return m, nil
}

// answer reads what the monitor says until it waits for a command.
func (m *monitor) answer() (string, error) {
	if err := m.conn.SetDeadline(time.Now().Add(monitorTimeout)); err != nil {
		return "", err
	}
	var said strings.Builder
	for !strings.HasSuffix(said.String(), prompt) {
		part, err := m.in.ReadString(prompt[len(prompt)-1])
		if said.WriteString(part); err != nil {
			return said.String(), err
		}
	}
	return said.String(), nil
}

// dumped is a line of memory: the address, and up to four words. What was typed is echoed before, in lines of other forms.
var dumped = regexp.MustCompile(`(?m)^[0-9a-f]{16}:((?: 0x[0-9a-f]{8})+)\r?$`)

// words reads n 32-bit words of physical memory, of which the registers of the
// emulated chips are a part.
func (m *monitor) words(address uint64, n int) (words []uint32, err error) {
	command := fmt.Sprintf("xp /%dwx %#x", n, address)
	if _, err := io.WriteString(m.conn, command+"\n"); err != nil {
		return nil, fmt.Errorf("QEMU's monitor: %s: %w", command, err)
	}
	text, err := m.answer()
	for _, row := range dumped.FindAllStringSubmatch(text, -1) {
		for _, word := range strings.Fields(row[1]) {
			w, _ := strconv.ParseUint(word, 0, 32) // of the form above
			words = append(words, uint32(w))
		}
	}
	if err == nil && len(words) != n {
		err = fmt.Errorf("%d words, want %d, in %q", len(words), n, text)
	}
	if err != nil {
		return nil, fmt.Errorf("QEMU's monitor: %s: %w", command, err)
	}
	return words, nil
}

// dial connects to a unix socket in the board's directory, whose path may be too long for
// a socket's address (108 bytes, unix(7)): through /proc it is always short.
func (b *Board) dial(ctx context.Context, socket string) (net.Conn, error) {
	d, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socket))
}
