package netio

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// A lane serves one request after the other, and ends a wait when the holder is lost. A lane that was closed is no reason to
// take the holder for lost.
func TestLane(t *testing.T) {
	ours, theirs, err := newConnection()
	must(t, err)
	side, holder := os.NewFile(uintptr(ours), "side"), os.NewFile(uintptr(theirs), "holder")
	defer side.Close()
	answers := true
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = readMessages(holder, maxRequestBytes, func(message []byte, files []int) bool {
			if answers {
				_ = sendMessage(files[0], answerMessage(int(message[0]), nil))
			}
			closeAll(files)
			answers = message[0] != byte(askPing) // which is the last one that is answered
			return true
		})
	}()
	lost := make(chan struct{})
	l, err := newLane(lost)
	must(t, err)
	for _, asked := range []holderRequest{askRenew, askRenew, askPing} {
		answer, files, _, err := l.call(side, asked, nil, time.Minute, nil)
		must(t, err)
		assert.Is(t, 0, len(files), "files")
		var value int
		must(t, decode(answer, &value))
		assert.Is(t, int(asked), value, "the answer")
	}
	_, _, took, err := l.call(side, askRenew, nil, 2*waitStep, nil)
	assert.ErrorIs(t, err, errHolderLost, "no answer")
	assert.Is(t, 2*waitStep, took, "the wait")
	close(lost)
	_, _, _, err = l.call(side, askRenew, nil, time.Minute, nil)
	assert.ErrorIs(t, err, errHolderLost, "a lost holder")
	l.close()
	_, _, _, err = l.call(side, askRenew, nil, time.Minute, nil)
	assert.ErrorIs(t, err, net.ErrClosed, "a closed lane")
	assert.Is(t, false, errors.Is(err, errHolderLost), "the holder is lost")
	must(t, unix.Shutdown(int(side.Fd()), unix.SHUT_RDWR))
	<-done
	holder.Close()
}
