package netio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// TestFilesOfMessages: a daemon that was taken over sets options on the socket that it gives to its holder, and the kernel
// adds more to each message. No file stays open that nobody knows of.
func TestFilesOfMessages(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []int
	}{
		{"the usual", nil},
		{"with credentials", []int{unix.SO_PASSCRED}},
		{"with a pidfd", []int{unix.SO_PASSPIDFD}},
		{"with both", []int{unix.SO_PASSCRED, unix.SO_PASSPIDFD}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ours, theirs, err := newConnection()
			must(t, err)
			defer closeAll([]int{ours, theirs})
			for _, option := range test.options {
				if err := unix.SetsockoptInt(theirs, unix.SOL_SOCKET, option, 1); err != nil {
					t.Skipf("this kernel has no such option: %v", err)
				}
			}
			reader, writer, err := os.Pipe()
			must(t, err)
			defer reader.Close()
			before := pidfds(t)
			for range 20 {
				must(t, sendMessage(ours, []byte("m"), int(writer.Fd()), int(writer.Fd())))
				message, files, err := receiveMessage(theirs, make([]byte, 8))
				must(t, err)
				assert.Is(t, "m", string(message), "the message")
				assert.Is(t, 2, len(files), "files that came with it")
				closeAll(files)
			}
			must(t, writer.Close())
			fd := int(reader.Fd())
			must(t, unix.SetNonblock(fd, true))
			n, err := unix.Read(fd, make([]byte, 1))
			if n != 0 || err != nil {
				t.Errorf("the pipe is still open for writing: read %d bytes, %v", n, err)
			}
			if more := pidfds(t) - before; more > 0 {
				t.Errorf("%d pidfds were left open", more)
			}
		})
	}
}

// pidfds counts those that this process has open.
func pidfds(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, file := range files {
		if to, _ := os.Readlink(file); strings.HasPrefix(to, "anon_inode:[pidfd]") || strings.HasPrefix(to, "pidfd:") {
			n++
		}
	}
	return n
}

// TestTextsFit: whatever a text has in it, two fit into an answer.
func TestTextsFit(t *testing.T) {
	for _, piece := range []string{"x", "<", "\x01", "\xff", "ä", "€", "\"", "x\x01€"} {
		text := cut(strings.Repeat(piece, 2*maxTextBytes))
		if least := maxTextBytes/6 - 8; len(text) < least {
			t.Errorf("of %q only %d bytes are left", piece, len(text))
		}
		answer := answerMessage(fenceState{Problem: text, Failed: text}, nil)
		if answer[0] != answerGood || len(answer) > maxAnswerBytes {
			t.Errorf("an answer with %q has %d bytes, and begins with %d", piece, len(answer), answer[0])
		}
	}
	assert.Is(t, "short", cut("short"), "a text that fits")
}
