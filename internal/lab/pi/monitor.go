package pi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// monitorTimeout bounds one exchange with QEMU's monitor. It takes less than a
// millisecond on an idle machine; the bound is for one that is overloaded.
const monitorTimeout = 20 * time.Second

// Monitor speaks to QEMU over its machine protocol, QMP (QEMU's
// docs/interop/qmp-spec): one JSON object per line. It is the view from outside:
// the emulated board has no part in an answer. QEMU serves one client at a time.
type Monitor struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialMonitor connects to the socket "qmp" in dir.
func dialMonitor(ctx context.Context, dir string) (*Monitor, error) {
	conn, err := dialIn(ctx, dir, "qmp")
	if err != nil {
		return nil, fmt.Errorf("connect to QEMU's monitor: %w", err)
	}
	m, err := newMonitor(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return m, nil
}

func newMonitor(conn net.Conn) (*Monitor, error) {
	m := &Monitor{conn: conn, in: bufio.NewReader(conn)}
	if err := conn.SetDeadline(time.Now().Add(monitorTimeout)); err != nil {
		return nil, err
	}
	// The greeting. Until capabilities are agreed on nothing else is allowed.
	if _, err := m.in.ReadSlice('\n'); err != nil {
		return nil, fmt.Errorf("wait for the greeting of QEMU's monitor (is another pilab command using it?): %w", err)
	}
	return m, m.execute("qmp_capabilities", nil, nil)
}

// Close ends the connection; the board goes on.
func (m *Monitor) Close() error { return m.conn.Close() }

// execute runs one command. The result is decoded into out unless that is nil.
func (m *Monitor) execute(command string, arguments, out any) error {
	fail := func(err error) error { return fmt.Errorf("QEMU's monitor: %s: %w", command, err) }
	request := struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments}
	line, err := json.Marshal(request)
	if err != nil {
		return fail(err)
	}
	if err := m.conn.SetDeadline(time.Now().Add(monitorTimeout)); err != nil {
		return fail(err)
	}
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		return fail(err)
	}
	for {
		line, err := m.in.ReadBytes('\n')
		if err != nil {
			return fail(err)
		}
		var answer struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return fail(fmt.Errorf("answer %q: %w", line, err))
		}
		switch {
		case answer.Error != nil:
			return fail(errors.New(answer.Error.Desc))
		case answer.Return == nil:
			continue // An event, which nobody asked for.
		case out == nil:
			return nil
		}
		if err := json.Unmarshal(answer.Return, out); err != nil {
			return fail(fmt.Errorf("answer %q: %w", answer.Return, err))
		}
		return nil
	}
}

// setCable plugs the cable in or pulls it out. On boards whose network is a USB
// adapter nothing passes any more then, but QEMU leaves the carrier on.
func (m *Monitor) setCable(plugged bool) error {
	return m.execute("set_link", map[string]any{"name": "nic", "up": plugged}, nil)
}

// words reads n 32-bit words of physical memory, of which the registers of the
// emulated chips are a part.
func (m *Monitor) words(address uint64, n int) ([]uint32, error) {
	var text string
	line := fmt.Sprintf("xp /%dwx %#x", n, address)
	if err := m.execute("human-monitor-command", map[string]any{"command-line": line}, &text); err != nil {
		return nil, err
	}
	words := make([]uint32, 0, n)
	for row := range strings.Lines(text) {
		_, values, _ := strings.Cut(row, ":")
		for _, v := range strings.Fields(values) {
			w, err := strconv.ParseUint(v, 0, 32)
			if err != nil {
				return nil, fmt.Errorf("QEMU's monitor: %s: answer %q", line, text)
			}
			words = append(words, uint32(w))
		}
	}
	if len(words) != n {
		return nil, fmt.Errorf("QEMU's monitor: %s: %d words, want %d, in %q", line, len(words), n, text)
	}
	return words, nil
}

// dialIn connects to a unix socket in a directory whose path may be too long for
// a socket's address (108 bytes, unix(7)): through /proc it is always short.
func dialIn(ctx context.Context, dir, name string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
}
