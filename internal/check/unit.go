package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// unitProber passes while a systemd unit is active and its main process lives, if it has one. A unit that starts or
// stops isn't active, and one that systemd is about to restart is "activating".
//
// It asks systemd over a connection of its own to the system bus, and makes a new one if that is lost. It doesn't use
// go-systemd's dbus.Conn, which makes two connections, wakes up for the changes of all units, and doesn't subscribe again
// after systemd has executed itself again.
type unitProber struct {
	name    string
	changed chan struct{}
	conn    *dbus.Conn      // nil if there is none
	path    dbus.ObjectPath // of the unit

	main  *process // the main process; nil if there is none
	ended int      // the PID of a main process that has ended, until systemd knows
}

func newUnitProber(c *Check) *unitProber {
	return &unitProber{name: c.Target, changed: make(chan struct{}, 1)}
}

func (p *unitProber) changes() <-chan struct{} { return p.changed }

func (p *unitProber) close() {
	p.dropMain()
	if p.conn != nil {
		p.conn.Close()
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
		return p.mainEnded() // systemd takes a while to notice
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	state, err := property[string](ctx, p, unitName, "ActiveState")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"active", "reloading", "refreshing"}, state) {
		p.dropMain()
		p.ended = 0
		return p.notActive(ctx, state)
	}
	if !strings.HasSuffix(p.name, ".service") {
		return nil
	}
	return p.watchMain(ctx)
}

// unsure says that systemd couldn't be asked, if there is an error.
func unsure(err error) error {
	if err == nil {
		return nil
	}
	return &unsureError{fmt.Errorf("cannot ask systemd: %w", err)}
}

// notActive returns why a unit isn't active.
func (p *unitProber) notActive(ctx context.Context, state string) error {
	loaded, err := property[string](ctx, p, unitName, "LoadState")
	switch {
	case err == nil && loaded == "not-found":
		return errors.New("systemd knows no unit of this name: is it installed, and spelt like that?")
	case err == nil && loaded != "loaded":
		return fmt.Errorf("systemd says that it is %s", loaded)
	}
	return fmt.Errorf("systemd says that it is %s", state)
}

func (p *unitProber) mainEnded() error { return endedError("its main process", p.ended) }

// watchMain begins to watch the main process of a service, unless that is watched already.
func (p *unitProber) watchMain(ctx context.Context) error {
	pid, err := property[uint32](ctx, p, serviceName, "MainPID")
	main := int(pid)
	switch {
	case err != nil:
		return err
	case p.main != nil && p.main.pid == main:
		return nil
	case main != 0 && main == p.ended:
		return p.mainEnded()
	}
	p.dropMain()
	p.ended = 0
	if main == 0 {
		return nil
	}
	watched, err := watchProcess(main, p.changed)
	if errors.Is(err, syscall.ESRCH) {
		p.ended = main
		return p.mainEnded()
	}
	if err != nil {
		return nil // the kernel has no pidfds; systemd tells of the end a little later
	}
	// The process may have ended before the call, and another process may have its PID now. So ask again.
	if again, err := property[uint32](ctx, p, serviceName, "MainPID"); err != nil || again != pid {
		watched.close()
		notify(p.changed) // the next run looks again, at once
		return err
	}
	p.main = watched
	return nil
}

// unitPath returns the object path of a unit (sd_bus_path_encode(3)).
func unitPath(name string) dbus.ObjectPath {
	return dbus.ObjectPath(unitPathPrefix + systemd.PathBusEscape(name))
}

// Names on the system bus (org.freedesktop.systemd1(5)).
const (
	systemdName    = "org.freedesktop.systemd1"
	managerPath    = "/org/freedesktop/systemd1"
	managerName    = "org.freedesktop.systemd1.Manager"
	unitName       = "org.freedesktop.systemd1.Unit"
	serviceName    = "org.freedesktop.systemd1.Service"
	unitPathPrefix = "/org/freedesktop/systemd1/unit/"

	busName        = "org.freedesktop.DBus"
	propertiesName = "org.freedesktop.DBus.Properties"
)

// defaultBus is the address of the system bus, unless DBUS_SYSTEM_BUS_ADDRESS has another.
const defaultBus = "unix:path=/run/dbus/system_bus_socket"

// connect makes the connection, unless there is one, and has systemd tell of changes of the unit.
func (p *unitProber) connect(ctx context.Context) error {
	if p.conn != nil && p.conn.Connected() {
		return nil
	}
	conn, err := connectBus(ctx)
	if err != nil {
		return unsure(err)
	}
	// The configured name may be an alias, and the signals come from the object of the real name.
	p.conn, p.path = conn, unitPath(p.name)
	id, err := property[string](ctx, p, unitName, "Id")
	if err == nil {
		p.path = unitPath(id)
		err = unsure(subscribe(ctx, conn, p.path))
	}
	if err != nil {
		conn.Close()
		return err
	}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	go p.listen(conn, signals)
	return nil
}

// connectBus connects to the system bus.
func connectBus(ctx context.Context) (*dbus.Conn, error) {
	address := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	if address == "" {
		address = defaultBus
	}
	// The context of a connection is for its whole life, so end it if ctx ends before the connection is made.
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	conn, err := dbus.Connect(address, dbus.WithContext(life), dbus.WithAuth(dbus.AuthExternal(strconv.Itoa(os.Geteuid()))))
	if !stop() && err == nil {
		conn.Close()
		err = ctx.Err()
	}
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("there is no system bus at %s: install the package dbus", address)
	default:
		err = fmt.Errorf("connect to the system bus at %s: %w", address, plainError(err))
	}
	end()
	return nil, err
}

// subscribe asks systemd and the bus for the signals that may tell of a unit's state.
func subscribe(ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath) error {
	for _, rule := range [][]dbus.MatchOption{
		// systemd executes itself again (daemon-reexec), or reloads its units.
		{dbus.WithMatchSender(busName), dbus.WithMatchInterface(busName), dbus.WithMatchMember("NameOwnerChanged"),
			dbus.WithMatchArg(0, systemdName)},
		{dbus.WithMatchSender(systemdName), dbus.WithMatchInterface(managerName), dbus.WithMatchMember("Reloading")},
		{dbus.WithMatchSender(systemdName), dbus.WithMatchInterface(propertiesName),
			dbus.WithMatchMember("PropertiesChanged"), dbus.WithMatchObjectPath(path)},
	} {
		if err := conn.AddMatchSignalContext(ctx, rule...); err != nil {
			return err
		}
	}
	return subscribeManager(ctx, conn)
}

// subscribeManager asks systemd to send signals at all.
func subscribeManager(ctx context.Context, conn *dbus.Conn) error {
	err := conn.Object(systemdName, managerPath).CallWithContext(ctx, managerName+".Subscribe", 0).Err
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == systemdName+".AlreadySubscribed" {
		return nil
	}
	return err
}

// listen has the check run again whenever the unit may have changed, and when the connection is lost.
func (p *unitProber) listen(conn *dbus.Conn, signals <-chan *dbus.Signal) {
	defer notify(p.changed)
	for s := range signals {
		if s.Name == busName+".NameOwnerChanged" {
			ctx, cancel := context.WithTimeout(context.Background(), slowly)
			_ = subscribeManager(ctx, conn) // if it fails, the check is still polled slowly
			cancel()
		}
		notify(p.changed)
	}
}

// property reads a property of the unit.
func property[T any](ctx context.Context, p *unitProber, iface, name string) (value T, err error) {
	var v dbus.Variant
	err = p.conn.Object(systemdName, p.path).CallWithContext(ctx, propertiesName+".Get", 0, iface, name).Store(&v)
	if err == nil {
		err = v.Store(&value)
	}
	if err != nil {
		return value, &unsureError{fmt.Errorf("cannot ask systemd for %s: %w", name, err)}
	}
	return value, nil
}
