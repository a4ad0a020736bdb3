package demopage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"

	"topdog/internal/web"
)

// A child that talks to browsers passes their requests on to its parent, who has the boards and the token. They
// go by HTTP/2 (RFC 9113) on one stream: it carries many requests at the same time, and tells when nobody waits for an
// answer any more. The child is not trusted. All that it can do is ask for what is in routes.

const (
	askedMax    = 4 << 10 // bytes of a request's body
	askedAtOnce = 32      // how many requests may be in progress
)

// headersMax bounds the headers of a request. Those that are longer end the stream, so it is more than a browser may send to the
// child (net/http adds 4 KiB to the limit there).
var headersMax = 2 * web.DefaultLimits.HeaderBytes

// passed are the headers that the child passes on, once each. The others, such as cookies of other programs on this host, are
// not needed.
var passed = []string{"Content-Type", "If-None-Match", "Origin", tokenHeader}

// onlyHTTP2 is how both ends talk.
var onlyHTTP2 = func() (p http.Protocols) {
	p.SetUnencryptedHTTP2(true)
	return p
}()

// serveLink answers what a child passes on until the stream ends, which is no error. It closes the stream.
func serveLink(ctx context.Context, stream net.Conn, source Source, o Options) error {
	paths := routes(source, o)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	var answering sync.WaitGroup
	server := http.Server{
		Protocols: &onlyHTTP2, MaxHeaderBytes: headersMax, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: askedAtOnce},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(ended) // no other answer begins
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answering.Add(1)
			defer answering.Done()
			r.Body = http.MaxBytesReader(w, r.Body, askedMax)
			if err := paths.Serve(w, r); err != nil {
				web.Refuse(w, err)
			}
		}),
	}
	err := server.Serve(&oneStream{stream: stream, ended: ended})
	stream.Close()
	cancel()
	answering.Wait()
	if !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("answer the process of the page: %w", err)
	}
	return nil
}

// oneStream is the listener of a server that has one connection.
type oneStream struct {
	stream net.Conn // nil when it was accepted
	ended  <-chan struct{}
}

func (l *oneStream) Accept() (c net.Conn, err error) {
	if c, l.stream = l.stream, nil; c != nil {
		return c, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

func (*oneStream) Close() error   { return nil }
func (*oneStream) Addr() net.Addr { return &net.UnixAddr{} }

// link is the child's end of the stream.
type link struct{ parent *http.ClientConn }

// newLink begins to talk to the parent. It calls ended when the stream has ended.
func newLink(ctx context.Context, stream net.Conn, ended func()) (*link, error) {
	t := http.Transport{
		Protocols: &onlyHTTP2, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return stream, nil },
	}
	parent, err := t.NewClientConn(ctx, "http", "parent:80") // the stream is open: nobody looks the name up
	if err != nil {
		return nil, fmt.Errorf("talk to the process that has the boards: %w", err)
	}
	parent.SetStateHook(func(c *http.ClientConn) {
		if c.Err() != nil {
			ended()
		}
	})
	return &link{parent}, nil
}

// routes are those of the page, answered by the parent.
func (l *link) routes() web.Routes {
	all := routes(nil, Options{})
	for i := range all {
		all[i].Serve = l.pass
	}
	return all
}

// pass has the parent answer a request.
func (l *link) pass(w http.ResponseWriter, r *http.Request) error {
	asked := r.WithContext(r.Context())
	asked.URL = &url.URL{Scheme: "http", Host: "parent", Path: r.URL.Path}
	asked.RequestURI, asked.Header = "", http.Header{}
	asked.Close = false // a client that closes its connection after the answer does not mean the stream
	for _, name := range passed {
		if value := r.Header.Get(name); value != "" {
			asked.Header.Set(name, value)
		}
	}
	answer, err := l.parent.RoundTrip(asked)
	if err != nil {
		return fmt.Errorf("ask the process that has the boards: %w", err)
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // a client that has gone is no failure
	return nil
}
