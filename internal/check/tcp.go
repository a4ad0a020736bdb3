package check

import "context"

// tcpProber passes when something accepts a connection. It says nothing on it.
type tcpProber struct {
	polled
	dialer dialer
	target string
}

func (p *tcpProber) probe(ctx context.Context) error {
	conn, err := p.dialer.dial(ctx, "tcp", p.target)
	if err != nil {
		return err
	}
	return conn.Close()
}

// polled is for probers that nothing tells of changes, and that keep nothing open.
type polled struct{}

func (polled) changes() <-chan struct{} { return nil }
func (polled) close()                   {}
