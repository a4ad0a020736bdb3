package netio

import (
	"net/netip"
	"testing"

	"topdog/wire"
)

// FuzzRequests is a daemon that was taken over, and asks a holder for anything. The interface of the holder's configuration
// does not exist, so that nothing of this machine is changed.
func FuzzRequests(f *testing.F) {
	for asked := askFence; asked <= askEnd; asked++ {
		f.Add([]byte{byte(asked)})
	}
	for _, request := range []struct {
		asked   holderRequest
		payload string
	}{
		{askCover, `{"interfaces":[1,2],"first":1,"again":false}`},
		{askSockets, `{"interface":"none0","local":"10.77.0.1"}`},
		{askFloating, `{"interface":"none0","addresses":["10.77.0.100/24"]}`},
		{askFloating, `{"interface":"none0","addresses":["8.8.8.8/24"]}`},
		{askResign, `{"datagram":"AAAA","to":["224.0.0.254:9254"]}`},
		{askProbe, `{"addr":"10.77.0.100","times":3,"spacing_ns":1000000}`},
		{askAnnouncer, "\x00\x00\x00\x01"},
		{askQuestions, "\x0a\x4d\x00\x01\x0a\x4d\x00\x02\x02\x00\x00\x00\x00\x01"},
		{askGateway, "\x00\x00\x00\x01none0"},
	} {
		f.Add(append([]byte{byte(request.asked)}, request.payload...))
	}
	options := HolderOptions{
		Interface: "none0", Floating: []netip.Addr{testVIP}, Group: wire.DefaultGroup, Tag: testTag, Method: HoldLifetime,
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > 0 && holderRequest(message[0]) == askFence {
			return // it makes one, which is slow, and reads nothing
		}
		h := newSession(options, -1, new(heldSockets))
		var files []int
		_, given, err := h.handle(message, &files)
		if err == nil && len(given) > 0 {
			t.Errorf("%d files are given", len(given))
		}
		if h.floating != nil { // prepared, and nothing more
			must(t, h.floating.Close())
		}
		if h.announcer != nil || h.frames != nil || len(h.sockets.files()) > 0 {
			t.Error("something was opened on an interface that is not there")
		}
		if len(message) > 0 {
			addrsIn(message[1:])
			questionsIn(message[1 : 1+(len(message)-1)/questionBytes*questionBytes])
			_, _ = indexIn(message[1:])
		}
	})
}
