package pi

import (
	"bufio"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// fakeQEMU answers each request with the next of the lines.
func fakeQEMU(t *testing.T, answers ...string) (conn net.Conn, requests <-chan string) {
	t.Helper()
	ours, theirs := net.Pipe()
	seen := make(chan string, len(answers))
	done := make(chan struct{})
	t.Cleanup(func() {
		ours.Close()
		<-done
	})
	go func() {
		defer close(done)
		defer theirs.Close()
		in := bufio.NewReader(theirs)
		if _, err := theirs.Write([]byte(`{"QMP": {"version": {}, "capabilities": ["oob"]}}` + "\n")); err != nil {
			return
		}
		for _, a := range answers {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			seen <- strings.TrimSpace(line)
			if _, err := theirs.Write([]byte(a + "\n")); err != nil {
				return
			}
		}
	}()
	return ours, seen
}

func TestMonitorReadsRegisters(t *testing.T) {
	dump, err := json.Marshal("000000003f200000: 0x00000000 0x00200000 0x00000000 0x3fe40000\r\n" +
		"000000003f200010: 0x24000924 0x00000924\r\n")
	assert.NoError(t, err)
	conn, requests := fakeQEMU(t,
		`{"return": {}}`,
		// Events come between an answer and its request, whenever they like.
		`{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "RTC_CHANGE"}`+"\n"+`{"return": `+string(dump)+`}`,
	)
	m, err := newMonitor(conn)
	assert.NoError(t, err)
	got, err := m.words(0x3f200000, 6)
	assert.NoError(t, err)
	want := []uint32{0, 0x00200000, 0, 0x3fe40000, 0x24000924, 0x924}
	assert.Equal(t, want, got, "")
	asked := []string{<-requests, <-requests}
	wantAsked := []string{
		`{"execute":"qmp_capabilities"}`,
		`{"execute":"human-monitor-command","arguments":{"command-line":"xp /6wx 0x3f200000"}}`,
	}
	assert.Equal(t, wantAsked, asked, "requests")
}

// What QEMU refuses, and what it says instead of numbers, are errors that tell
// what was asked.
func TestMonitorErrors(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"refused":       {`{"error": {"class": "GenericError", "desc": "Device 'nic' not found"}}`, "Device 'nic' not found"},
		"no JSON":       {`what?`, "what?"},
		"too few words": {`{"return": "3f200000: 0x00000001\r\n"}`, "1 words, want 2"},
		"no words":      {`{"return": "Cannot access memory\r\n"}`, "0 words, want 2"},
		"no numbers":    {`{"return": "3f200000: x y\r\n"}`, `xp /2wx 0x3f200000: answer`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := fakeQEMU(t, `{"return": {}}`, tc.answer)
			m, err := newMonitor(conn)
			assert.NoError(t, err)
			_, err = m.words(0x3f200000, 2)
			assert.ErrorContains(t, err, tc.want, "")
		})
	}
}
