package pi

import (
	"bufio"
	"encoding/json"
	"net"
	"testing"

	"topdog/internal/lab/assert"
)

// fakeQEMU answers each line with the next of the texts.
func fakeQEMU(t *testing.T, answers ...string) (m *monitor, asked <-chan string) {
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
		for _, a := range answers {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			seen <- line
			if _, err := theirs.Write([]byte(a)); err != nil {
				return
			}
		}
	}()
	return &monitor{ours, json.NewDecoder(ours)}, seen
}

// The answer is as QEMU gives it, after its greeting, or after an event.
func TestMonitorReadsRegisters(t *testing.T) {
	m, asked := fakeQEMU(t, `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": ["oob"]}}`+"\r\n"+`{"return": {}}`+"\r\n",
		`{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "RTC_CHANGE", "data": {"offset": 0}}`+"\r\n"+
			`{"return": "000000003f200000: 0x00000000 0x00200000 0x00000000 0x3fe40000\r\n000000003f200010: 0x24000924 0x00000924\r\n"}`+"\r\n")
	_, err := m.execute("qmp_capabilities", map[string]string{})
	assert.NoError(t, err)
	assert.Is(t, `{"arguments":{},"execute":"qmp_capabilities"}`+"\n", <-asked, "asked")
	got, err := m.words(0x3f200000, 6)
	assert.NoError(t, err)
	assert.Equal(t, []uint32{0, 0x00200000, 0, 0x3fe40000, 0x24000924, 0x924}, got, "")
	assert.Is(t, `{"arguments":{"command-line":"xp /6wx 0x3f200000"},"execute":"human-monitor-command"}`+"\n", <-asked, "asked")
}

// What is said instead of numbers is in an error that tells what was asked.
func TestMonitorErrors(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"too few words": {`{"return": "000000003f200000: 0x00000001\r\n"}`, "xp /2wx 0x3f200000: 1 words, want 2"},
		"no words":      {`{"return": "Cannot access memory\r\n"}`, "0 words, want 2"},
		"no numbers":    {`{"return": "000000003f200000: x y\r\n"}`, "0 words, want 2"},
		"an error":      {`{"error": {"class": "GenericError", "desc": "no such command"}}`, "no such command"},
		"the end":       {`{"return": "000000003f200000:`, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := fakeQEMU(t, tc.answer)
			_, err := m.words(0x3f200000, 2)
			assert.ErrorContains(t, err, tc.want, "")
		})
	}
}
