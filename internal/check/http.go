package check

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// bodyMax is how much of an answer is read, to look for a text in it.
	bodyMax = 64 << 10
	// headersMax bounds what is in front of it.
	headersMax = 16 << 10
)

// httpProber passes when a server answers a GET with one of the right statuses, and with the text.
type httpProber struct {
	polled
	check  Check
	client http.Client
}

// newHTTPProber returns a prober that makes a connection of its own each time: one that is kept
// would not show that the server accepts no more. It follows no redirection, and asks no
// proxy. The certificate is not verified: the server is asked at this board's own address, and the
// certificate is for the name under which others know it; that it has expired is not cured
// by another board, which has the same.
func newHTTPProber(c *Check, d dialer) *httpProber {
	return &httpProber{check: *c, client: http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            func(ctx context.Context, network, addr string) (net.Conn, error) { return d.dial(ctx, network, addr) },
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: true, ServerName: hostName(c.Host)},
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: headersMax,
		},
	}}
}

// hostName returns the name in front of a port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

func (p *httpProber) probe(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.check.Target, nil)
	if err != nil {
		return err
	}
	request.Host = p.check.Host // "" means that of the URL
	request.Header.Set("User-Agent", "topdog")
	answer, err := p.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which whoever reads it knows
		}
		if text := err.Error(); len(text) > textMax { // it quotes what the server has sent
			return errors.New(shortened(text))
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

// accepts reports whether a status is a good one.
func (p *httpProber) accepts(status int) bool {
	if len(p.check.Status) == 0 {
		return status >= 200 && status < 400
	}
	return slices.Contains(p.check.Status, status)
}
