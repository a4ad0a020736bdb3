package check

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// misaimedError says that a check that counts on all boards is aimed at a floating address. It would ask the leader
// from every board.
type misaimedError struct {
	host string
	addr netip.Addr
}

func (e *misaimedError) Error() string {
	itself := "127.0.0.1"
	if e.addr.Is6() {
		itself = "[::1]"
	}
	return fmt.Sprintf(`%s is the floating address %v, so this check asks the leader from all boards: `+
		`aim it at %s, or add when = "leading"`, e.host, e.addr, itself)
}

// dialer connects to the target of a check.
type dialer struct {
	floating []netip.Addr // it must not connect to these
}

// dial connects to an address. If the host is a name, it tries the name's addresses one after the other.
func (d dialer) dial(ctx context.Context, network, hostPort string) (conn net.Conn, err error) {
	err = d.each(ctx, hostPort, func(addrPort string) error {
		var n net.Dialer
		made, err := n.DialContext(ctx, network, addrPort)
		if err != nil {
			return plainError(err)
		}
		conn = made
		return nil
	})
	return conn, err
}

// each calls try with the address of the host, or with each address of a name until one succeeds.
func (d dialer) each(ctx context.Context, hostPort string, try func(addrPort string) error) error {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return err
	}
	var failed error
	for _, addr := range addrs {
		if failed = try(net.JoinHostPort(addr.String(), port)); failed == nil {
			return nil
		}
	}
	return failed
}

// resolve returns the addresses of a host. It fails if one of them is a floating address.
func (d dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil // the configuration has checked it
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("the name %s has no address: %w", host, plainError(err))
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
		if slices.Contains(d.floating, addrs[i].WithZone("")) {
			return nil, &misaimedError{host, addrs[i]}
		}
	}
	return addrs, nil
}

// plainError returns the cause of an error without the operation and the addresses, which the reader knows.
func plainError(err error) error {
	var dns *net.DNSError
	var call *os.SyscallError
	var number syscall.Errno
	switch {
	case errors.As(err, &dns):
		return errors.New(dns.Err)
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &number):
		return number
	}
	return err
}

// tryTCP connects to the server, and sends nothing.
func (d dialer) tryTCP(ctx context.Context, target string) error {
	conn, err := d.dial(ctx, "tcp", target)
	if err != nil {
		return err
	}
	return conn.Close()
}

const (
	// bodyMax is how much of an answer's body is searched for a text, in bytes.
	bodyMax = 64 << 10
	// headersMax bounds the headers of an answer, in bytes.
	headersMax = 16 << 10
)

// httpProber passes when a server answers a GET with an accepted status, and with the expected text.
type httpProber struct {
	check  Check
	client http.Client
}

// newHTTPProber returns a prober that makes a new connection each time, since one that is kept alive wouldn't show that the
// server accepts no more. It follows no redirects and uses no proxy. The certificate isn't verified: the server is asked
// at this board's own address, and the certificate is for a public name. An expired certificate is no reason to hand over,
// because the other boards have the same one.
func newHTTPProber(c *Check, d dialer) *httpProber {
	return &httpProber{check: *c, client: http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            d.dial,
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: true, ServerName: (&url.URL{Host: c.Host}).Hostname()},
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: headersMax,
		},
	}}
}

func (p *httpProber) probe(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.check.Target, nil)
	if err != nil {
		return err
	}
	request.Host = p.check.Host // if this is "", the URL's host is used
	request.Header.Set("User-Agent", "topdog")
	answer, err := p.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which the reader knows
		}
		if text := err.Error(); len(text) > textMax { // it may quote the server
			return errors.New(shortened(text, textMax))
		}
		return err
	}
	defer answer.Body.Close()
	if !p.accepts(answer.StatusCode) {
		return fmt.Errorf("it answered with status %d", answer.StatusCode)
	}
	if p.check.Contains == "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodyMax))
	switch {
	case strings.Contains(string(body), p.check.Contains):
		return nil
	case err != nil:
		return fmt.Errorf("the answer broke off: %w", err)
	}
	return fmt.Errorf("the first %d bytes of its answer do not contain %q", len(body), p.check.Contains)
}

// accepts reports whether a status is an accepted one.
func (p *httpProber) accepts(status int) bool {
	if len(p.check.Status) == 0 {
		return status >= 200 && status < 400
	}
	return slices.Contains(p.check.Status, status)
}

// dnsPort is the default port of a name server.
const dnsPort = "53"

// dnsProber passes when a name server answers the question for a name's IPv4 address with NOERROR and at least one
// record.
type dnsProber struct {
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
	// Over UDP only an answer shows whether there is a server. So ask at all addresses: localhost may be ::1 too.
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
	// An answer over UDP without EDNS has at most 512 bytes (RFC 1035, section 2.3.4). A longer one arrives cut,
	// and still shows what matters.
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

// question returns the message of a question.
func (p *dnsProber) question(id uint16) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: p.name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	return m.Pack()
}

// errNotOurs says that a datagram doesn't answer the last question.
var errNotOurs = errors.New("not the answer to this question")

// judge returns what is wrong with an answer.
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
		return nil // it has more records than fit
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
