package daemon

import (
	"context"
	"slices"

	"topdog/netio"
)

// startCounting begins to count frames, or goes on.
func (l *lan) startCounting() {
	if l.frames == nil {
		if l.platform.OpenFrames == nil {
			return
		}
		frames, err := l.platform.OpenFrames(l.link.outside())
		if err != nil {
			l.failed(err)
			return
		}
		l.frames = frames
	}
	l.failed(l.frames.Ignore(l.group.hosts()))
	l.baseline = l.counted()
}

// heardFrames reports whether frames of other hosts have arrived since the core has asked, and
// nothing else was heard.
func (l *lan) heardFrames() bool {
	if !l.asking || l.frames == nil || l.counted() == l.baseline {
		return false
	}
	l.asking = false
	l.remember(l.frames.Senders())
	return true
}

// remember notes who was heard, if it is a host of this link.
func (l *lan) remember(senders []netio.Neighbour) {
	for _, s := range senders {
		if !l.link.reaches(s.Addr) || slices.ContainsFunc(l.seen, func(n netio.Neighbour) bool { return n.Addr == s.Addr }) {
			continue
		}
		l.seen = append([]netio.Neighbour{s}, l.seen...)
		l.seen = l.seen[:min(len(l.seen), neighboursMax)]
	}
}

func (l *lan) counted() uint64 {
	count, err := l.frames.Frames()
	if err != nil {
		l.failed(err)
		return l.baseline
	}
	return count
}

// stopCounting ends the counting. To close a packet socket takes a while, so that is done
// beside the loop.
func (l *lan) stopCounting() {
	if frames := l.frames; frames != nil {
		l.frames = nil
		l.tasks.start(func(context.Context) error { return frames.Close() })
	}
}
