package demo

import (
	"errors"
	"net/netip"
	"slices"

	"topdog/internal/lab/demopage"
)

// impair makes a board deaf, mute, both or neither.
func (l *loopback) impair(n int, deaf, mute bool) error {
	l.boards[n-1].deaf.Store(deaf)
	l.boards[n-1].mute.Store(mute)
	return nil
}

// lose has each board lose a share of what the others send, each by chance of its own.
func (l *loopback) lose(share float64) error {
	l.loss.set(share)
	return nil
}

// split lets the LAN fall in two: some boards reach only each other, and so do the rest and the
// client. With no boards it is one LAN again.
func (l *loopback) split(apart []int) error {
	var stay []*loopbackBoard
	var failed []error
	for _, b := range l.boards {
		side := slices.Contains(apart, b.number)
		if side == b.apart.Load() {
			stay = append(stay, b)
			continue
		}
		b.apart.Store(side)
		failed = append(failed, b.answerAnew())
	}
	// The socket that was bound last gets the questions. A board that comes back has not announced
	// itself to the client's switch, so those that were there all the time come after it.
	for _, b := range stay {
		failed = append(failed, b.answerAnew())
	}
	return errors.Join(failed...)
}

// answerAnew has a board that holds the address do so on a new socket, and close the former one.
func (b *loopbackBoard) answerAnew() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answerer == nil {
		return nil
	}
	former := b.answerer
	if err := b.answer(); err != nil {
		return err
	}
	return former.Close()
}

// isApart reports whether a board's address is on the other part of the LAN than the client.
func (l *loopback) isApart(addr netip.Addr) bool {
	for _, b := range l.boards {
		if b.addr() == addr {
			return b.apart.Load()
		}
	}
	return false
}

// killed has the dead man's switch of a board do its work.
func (l *loopback) killed(n int) {
	b := l.boards[n-1]
	b.mu.Lock()
	deadman := b.deadman
	b.mu.Unlock()
	if deadman != nil {
		deadman.daemonKilled()
	}
}

// cannot says nothing: on loopback, everything can be done.
func (l *loopback) cannot(demopage.Verb) string { return "" }
