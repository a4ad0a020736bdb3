package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/godbus/dbus/v5"
)

// unitProber passes while a unit of systemd is active, and its main process, if it has one, lives. A
// unit that is on its way there or back is not active: one that systemd is about to restart is "activating".
type unitProber struct {
	bus     *bus
	name    string
	changed chan struct{}
	path    dbus.ObjectPath // that is watched; "" until systemd was asked

	main  *process // the main process; nil if there is none
	ended int      // the main process that has ended, until systemd knows
}

func newUnitProber(c *Check, b *bus) *unitProber {
	return &unitProber{bus: b, name: c.Target, changed: make(chan struct{}, 1)}
}

func (p *unitProber) changes() <-chan struct{} { return p.changed }

func (p *unitProber) close() {
	p.dropMain()
	if p.path != "" {
		p.bus.forget(p.path, p.changed)
	}
}

func (p *unitProber) dropMain() {
	if p.main != nil {
		p.main.close()
	}
	p.main = nil
}

func (p *unitProber) probe(ctx context.Context) error {
	if p.main != nil && !p.main.lives() {
		p.ended = p.main.pid
		p.dropMain()
		return p.mainEnded() // at once: systemd needs a while to find out
	}
	conn, err := p.bus.connection(ctx)
	if err != nil {
		return err
	}
	if err := p.watch(ctx, conn); err != nil {
		return err
	}
	state, err := property[string](ctx, conn, p.path, unitName, "ActiveState")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"active", "reloading", "refreshing"}, state) {
		p.dropMain()
		p.ended = 0
		return p.notActive(ctx, conn, state)
	}
	if !strings.HasSuffix(p.name, ".service") {
		return nil
	}
	return p.watchMain(ctx, conn)
}

// watch has this prober told when the unit changes. The unit may be known by another name too: the signals
// come from that by which systemd knows it.
func (p *unitProber) watch(ctx context.Context, conn *dbus.Conn) error {
	if p.path != "" {
		return nil
	}
	id, err := property[string](ctx, conn, unitPath(p.name), unitName, "Id")
	if err != nil {
		return err
	}
	path := unitPath(id)
	if err := p.bus.watch(ctx, path, p.changed); err != nil {
		p.bus.forget(path, p.changed)
		return &unsureError{fmt.Errorf("cannot ask systemd: %w", err)}
	}
	p.path = path
	return nil
}

// notActive says why a unit is not active.
func (p *unitProber) notActive(ctx context.Context, conn *dbus.Conn, state string) error {
	loaded, err := property[string](ctx, conn, p.path, unitName, "LoadState")
	switch {
	case err == nil && loaded == "not-found":
		return errors.New("systemd knows no unit of this name: is it installed, and spelt like that?")
	case err == nil && loaded != "loaded":
		return fmt.Errorf("systemd says that it is %s", loaded)
	}
	return fmt.Errorf("systemd says that it is %s", state)
}

func (p *unitProber) mainEnded() error { return endedError("its main process", p.ended) }

// watchMain watches the main process of a service.
func (p *unitProber) watchMain(ctx context.Context, conn *dbus.Conn) error {
	mainPID := func() (int, error) {
		pid, err := property[uint32](ctx, conn, p.path, serviceName, "MainPID")
		return int(pid), err
	}
	pid, err := mainPID()
	if err != nil {
		return err
	}
	const most = 3 // a service that changes it more often meanwhile is looked at the next time
	for range most {
		switch {
		case p.main != nil && p.main.pid == pid:
			return nil
		case pid != 0 && pid == p.ended:
			return p.mainEnded()
		}
		p.dropMain()
		p.ended = 0
		if pid == 0 {
			return nil
		}
		watched, err := watchProcess(pid, p.changed)
		if errors.Is(err, syscall.ESRCH) {
			p.ended = pid
			return p.mainEnded()
		}
		if err != nil {
			return nil // an old kernel: systemd tells of its end, a little later
		}
		// Between the answer and the call the process may have ended, and its number may be another one's.
		p.main = watched
		if pid, err = mainPID(); err != nil {
			return err
		}
	}
	return nil
}

// unitPath is the object of a unit: its name with all that is no letter or digit as an underscore
// and two hexadecimal digits. A first digit is written so too (sd_bus_path_encode(3)).
func unitPath(name string) dbus.ObjectPath {
	var b strings.Builder
	b.WriteString(unitPathPrefix)
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return dbus.ObjectPath(b.String())
}
