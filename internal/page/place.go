package page

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/console"
	"topdog/internal/web"
)

// listenRetry is how long to wait before the port is opened again.
const listenRetry = time.Second

// listen serves the port until ctx ends.
func (p *page) listen(ctx context.Context) error {
	for told := false; ; {
		port, err := web.Listen(ctx, p.Listen)
		if err == nil {
			told = false
			p.opened(port)
			err = p.server().Run(ctx, port)
		} else if !passes(err) && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if !told {
			told = true
			p.Log.Warnf("%v (tries again every %v)", err, listenRetry)
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
			return nil
		}
	}
}

// passes reports whether a port that cannot be opened now may be there later: another program
// may end, and an address may come with the lead or by DHCP.
func passes(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// opened notes on which port people find the page.
func (p *page) opened(port net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Log.Infof("serves HTTP on %s", port.Addr())
	if at, err := netip.ParseAddrPort(port.Addr().String()); err == nil {
		p.place.port = at
		p.place.tell(p.Log)
	}
}

// place is where people find the page.
type place struct {
	port     netip.AddrPort // invalid until there is one
	own      string         // address of this board
	floating []string
	told     []string
}

// heard notes which addresses there are.
func (p *place) heard(t *console.Transition) {
	if t.Status != nil {
		p.own = t.Status.Board.Address
	}
	if len(t.Addresses) > 0 {
		p.floating = nil
		for _, prefix := range t.Addresses {
			address, _, _ := strings.Cut(prefix, "/")
			p.floating = append(p.floating, address)
		}
	}
}

// tell logs where people find the page, when that is known or has changed.
func (p *place) tell(log *logrus.Entry) {
	if !p.port.IsValid() || !p.port.Addr().IsUnspecified() || len(p.floating) == 0 {
		return
	}
	urls := p.urls(p.floating)
	if p.own != "" {
		urls = append(urls, p.urls([]string{p.own})...)
	}
	if slices.Equal(urls, p.told) {
		return
	}
	p.told = urls
	if p.own == "" {
		log.Infof("the page is at %s on the board that leads", strings.Join(urls, " "))
		return
	}
	log.Infof("the page is at %s on the board that leads, and at %s on this one", strings.Join(urls[:len(urls)-1], " "), urls[len(urls)-1])
}

// urls are those of the page at some addresses.
func (p *place) urls(addresses []string) (all []string) {
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, "http://"+netip.AddrPortFrom(address, p.port.Port()).String()+"/")
		}
	}
	return all
}
