package pi

import (
	"bufio"
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
	return &monitor{ours, bufio.NewReader(ours)}, seen
}

// The answer is as QEMU gives it: what is typed is echoed with control sequences, by its line editor.
func TestMonitorReadsRegisters(t *testing.T) {
	m, asked := fakeQEMU(t, "x\x1b[K\x1b[Dxp\x1b[K\x1b[D\x1b[Dxp /6wx 0x3f200000\x1b[K\r\n"+
		"000000003f200000: 0x00000000 0x00200000 0x00000000 0x3fe40000\r\n"+
		"000000003f200010: 0x24000924 0x00000924\r\n(qemu) ")
	got, err := m.words(0x3f200000, 6)
	assert.NoError(t, err)
	assert.Equal(t, []uint32{0, 0x00200000, 0, 0x3fe40000, 0x24000924, 0x924}, got, "")
	assert.Is(t, "xp /6wx 0x3f200000\n", <-asked, "asked")
}

// What is said instead of numbers is in an error that tells what was asked.
func TestMonitorErrors(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"too few words": {"000000003f200000: 0x00000001\r\n(qemu) ", "xp /2wx 0x3f200000: 1 words, want 2"},
		"no words":      {"Cannot access memory\r\n(qemu) ", "0 words, want 2"},
		"no numbers":    {"000000003f200000: x y\r\n(qemu) ", "0 words, want 2"},
		"the end":       {"000000003f200000:", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := fakeQEMU(t, tc.answer)
			_, err := m.words(0x3f200000, 2)
			assert.ErrorContains(t, err, tc.want, "")
		})
	}
}
