package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsPort is where a name server is asked if no port is written.
const dnsPort = "53"

// dnsProber passes when a name server answers a question for the IPv4 address of a name with
// NOERROR and at least one record.
type dnsProber struct {
	polled
	dialer dialer
	name   dnsmessage.Name
	server string
}

func newDNSProber(c *Check, d dialer) (*dnsProber, error) {
	name, server, ok := SplitDNS(c.Target)
	if !ok {
		return nil, fmt.Errorf("%q is not a name and a server", c.Target)
	}
	question, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(strings.Trim(server, "[]"), dnsPort)
	}
	return &dnsProber{dialer: d, name: question, server: server}, nil
}

func (p *dnsProber) probe(ctx context.Context) error {
	// Over UDP only the answer shows whether there is a server. The name localhost is ::1 too.
	return p.dialer.each(ctx, p.server, func(server string) error { return p.ask(ctx, server) })
}

// ask asks one server.
func (p *dnsProber) ask(ctx context.Context, server string) error {
	var n net.Dialer
	conn, err := n.DialContext(ctx, "udp", server)
	if err != nil {
		return plainError(err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	id := uint16(rand.Uint32())
	question, err := p.question(id)
	if err != nil {
		return err
	}
	if _, err := conn.Write(question); err != nil {
		return plainError(err)
	}
	// The size of an answer over UDP without EDNS (RFC 1035, section 2.3.4). A longer one is
	// cut there, which does not matter.
	answer := make([]byte, 512)
	for {
		n, err := conn.Read(answer)
		if err != nil {
			return plainError(err)
		}
		if err := p.judge(answer[:n], id); !errors.Is(err, errNotOurs) {
			return err
		}
	}
}

// question returns the message that is sent.
func (p *dnsProber) question(id uint16) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: p.name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	return m.Pack()
}

// errNotOurs says that a datagram is no answer to the question that was asked last.
var errNotOurs = errors.New("not the answer to this question")

// judge says what is wrong with an answer.
func (p *dnsProber) judge(message []byte, id uint16) error {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || header.ID != id || !header.Response {
		return errNotOurs
	}
	switch {
	case header.RCode != dnsmessage.RCodeSuccess:
		return fmt.Errorf("it answered with %s", strings.TrimPrefix(header.RCode.String(), "RCode"))
	case header.Truncated:
		return nil // there is more than fits
	}
	if err := parser.SkipAllQuestions(); err != nil {
		return fmt.Errorf("its answer is broken: %w", err)
	}
	switch _, err := parser.AnswerHeader(); {
	case errors.Is(err, dnsmessage.ErrSectionDone):
		return errors.New("its answer has no record: write a name that it knows")
	case err != nil:
		return fmt.Errorf("its answer is broken: %w", err)
	}
	return nil
}
