package bench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	dnsPort = 53
	// answerWithin is how long the client waits for an answer. What comes later is no answer.
	answerWithin = 100 * time.Millisecond
)

// nameLine is the line of an Asker to the services: it asks for a name at the floating address, and the address
// of that name says whose service has answered. It remembers which questions got no answer.
type nameLine struct {
	conn   *net.UDPConn
	target netip.AddrPort
	query  []byte    // its number is 0
	buf    [512]byte // of the goroutine that receives

	mu        sync.Mutex
	questions []nameQuestion // by their numbers; the first one is 1
}

// nameQuestion is one question; answered is zero while it has no answer.
type nameQuestion struct{ asked, answered time.Time }

// loopback is where a board asks itself.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// newNameLine asks from a socket at an address.
func newNameLine(conn *net.UDPConn, at netip.Addr) *nameLine {
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(serviceName + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}
	query, err := m.Pack()
	if err != nil {
		panic(err) // A constant that cannot be packed is a mistake in this file.
	}
	return &nameLine{conn: conn, target: netip.AddrPortFrom(at, dnsPort), query: query}
}

// Ask sends a question. Its number, modulo 65536, is the ID of the message.
func (l *nameLine) Ask(number uint32) error {
	query := append([]byte{byte(number >> 8), byte(number)}, l.query[2:]...)
	l.mu.Lock()
	l.questions = append(l.questions, nameQuestion{asked: time.Now()})
	l.mu.Unlock()
	_, err := l.conn.WriteToUDPAddrPort(query, l.target)
	return err
}

// Answer waits for an answer in time to one of the questions.
func (l *nameLine) Answer() (board int, err error) {
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(l.buf[:])
		at := time.Now()
		if err != nil {
			return 0, err
		}
		if netip.AddrPortFrom(from.Addr().Unmap(), from.Port()) != l.target {
			continue
		}
		id, board, err := parseAnswer(l.buf[:n])
		if err == nil && l.answered(id, at) {
			return board, nil
		}
	}
}

func (l *nameLine) Close() error { return l.conn.Close() }

// answered notes an answer, and reports whether it came in time.
func (l *nameLine) answered(id uint16, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := len(l.questions)
	i := newest - int(uint16(newest)-id) - 1 // the newest one with this ID
	if i < 0 || at.Sub(l.questions[i].asked) > answerWithin {
		return false
	}
	l.questions[i].answered = at
	return true
}

// parseAnswer returns the ID of an answer, and the board that has given it.
func parseAnswer(message []byte) (id uint16, board int, err error) {
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil {
		return 0, 0, err
	}
	if m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) == 0 {
		return 0, 0, fmt.Errorf("the answer is %v, with %d addresses", m.RCode, len(m.Answers))
	}
	a, ok := m.Answers[0].Body.(*dnsmessage.AResource)
	if !ok {
		return 0, 0, errors.New("the answer is no address")
	}
	return m.ID, int(a.A[3]), nil
}

// silence is what questions without an answer come to.
type silence struct {
	longest time.Duration // from such a question to the next answer
	open    bool          // there was none after it
}

// silences looks at the questions since a moment.
func (l *nameLine) silences(since time.Time) silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	return silencesOf(l.questions, since, time.Now())
}

// silencesOf looks at questions of which the last ones may still get an answer.
func silencesOf(questions []nameQuestion, since, until time.Time) (s silence) {
	var lostAt time.Time // the first question without an answer since the last answer
	for _, q := range questions {
		switch {
		case q.answered.IsZero() && until.Sub(q.asked) < answerWithin:
			continue // it may come
		case q.answered.IsZero():
			if lostAt.IsZero() {
				lostAt = q.asked
			}
		case !lostAt.IsZero():
			if q.answered.After(since) {
				s.longest = max(s.longest, q.answered.Sub(lostAt))
			}
			lostAt = time.Time{}
		}
	}
	if !lostAt.IsZero() {
		s.longest, s.open = max(s.longest, until.Sub(lostAt)), true
	}
	return s
}

// askOnce asks the service of this board once, from the machine of the caller.
func askOnce() error {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return err
	}
	line := newNameLine(conn, loopback)
	defer line.Close()
	err = errors.Join(line.Ask(1), conn.SetReadDeadline(time.Now().Add(answerWithin)))
	if err == nil {
		_, err = line.Answer()
	}
	return err
}
