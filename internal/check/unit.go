package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// unitProber passes while a systemd unit is active and its main process lives, if it has one. A unit that starts or
// stops isn't active, and one that systemd is about to restart is "activating".
type unitProber struct {
	bus     *bus
	name    string
	changed chan struct{}
	path    dbus.ObjectPath // of the unit; "" until it is watched

	main  *process // the main process; nil if there is none
	ended int      // the PID of a main process that has ended, until systemd knows
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
		return p.mainEnded() // systemd takes a while to notice
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

// watch begins to watch the unit. The configured name may be an alias, and the signals come from the object of
// the real name.
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

// notActive returns why a unit isn't active.
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

// watchMain begins to watch the main process of a service, unless it does already.
func (p *unitProber) watchMain(ctx context.Context, conn *dbus.Conn) error {
	mainPID := func() (int, error) {
		pid, err := property[uint32](ctx, conn, p.path, serviceName, "MainPID")
		return int(pid), err
	}
	pid, err := mainPID()
	if err != nil {
		return err
	}
	const most = 3 // if the service replaces it more often meanwhile, the next run looks again
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
			return nil // the kernel has no pidfds; systemd tells of the end a little later
		}
		// The process may have ended before the call, and its PID may be another's. So ask again.
		p.main = watched
		if pid, err = mainPID(); err != nil {
			return err
		}
	}
	return nil
}

// unitPath returns the object path of a unit. All of its name but letters and digits is escaped, and so is a leading digit,
// as an underscore and two hexadecimal digits (sd_bus_path_encode(3)).
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

// bus is a connection to systemd over the system bus, which all unit checks share. It is made when it is needed,
// and again after it was lost.
//
// It isn't go-systemd's dbus.Conn: that one makes two connections, wakes up for the changes of all units, and doesn't
// subscribe again after systemd has executed itself again.
type bus struct {
	mu      sync.Mutex
	conn    *dbus.Conn // nil if there is none
	watched map[dbus.ObjectPath][]chan<- struct{}
}

// connection returns the connection, and makes one if there is none.
func (b *bus) connection(ctx context.Context) (*dbus.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil && b.conn.Connected() {
		return b.conn, nil
	}
	conn, err := connect(ctx)
	if err != nil {
		return nil, &unsureError{fmt.Errorf("cannot ask systemd: %w", err)}
	}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	if err := b.subscribe(ctx, conn); err != nil {
		conn.Close()
		return nil, &unsureError{fmt.Errorf("cannot ask systemd: %w", err)}
	}
	b.conn = conn
	go b.listen(conn, signals)
	return conn, nil
}

// connect connects to the system bus.
func connect(ctx context.Context) (*dbus.Conn, error) {
	address := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	if address == "" {
		address = defaultBus
	}
	life, end := context.WithCancel(context.Background())
	conn, err := dbus.Dial(address, dbus.WithContext(life))
	if err != nil {
		end()
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there is no system bus at %s: install the package dbus", address)
		}
		return nil, fmt.Errorf("connect to the system bus at %s: %w", address, plainError(err))
	}
	// Auth and Hello take no context, so close the connection when ctx ends.
	stop := context.AfterFunc(ctx, end)
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))})
	if err == nil {
		err = conn.Hello()
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		end()
		return nil, fmt.Errorf("log in to the system bus at %s: %w", address, err)
	}
	return conn, nil
}

// subscribe asks systemd and the bus for the signals that may tell of a unit's state.
func (b *bus) subscribe(ctx context.Context, conn *dbus.Conn) error {
	for _, rule := range [][]dbus.MatchOption{
		// systemd executes itself again (daemon-reexec), or reloads its units.
		{dbus.WithMatchSender(busName), dbus.WithMatchInterface(busName), dbus.WithMatchMember("NameOwnerChanged"),
			dbus.WithMatchArg(0, systemdName)},
		{dbus.WithMatchSender(systemdName), dbus.WithMatchInterface(managerName), dbus.WithMatchMember("Reloading")},
	} {
		if err := conn.AddMatchSignalContext(ctx, rule...); err != nil {
			return err
		}
	}
	for path := range b.watched {
		if err := conn.AddMatchSignalContext(ctx, changesOf(path)...); err != nil {
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

// changesOf matches the signals of changes of a unit's properties.
func changesOf(path dbus.ObjectPath) []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender(systemdName), dbus.WithMatchInterface(propertiesName),
		dbus.WithMatchMember("PropertiesChanged"), dbus.WithMatchObjectPath(path),
	}
}

// watch notifies changed whenever a unit may have changed, until forget.
func (b *bus) watch(ctx context.Context, path dbus.ObjectPath, changed chan<- struct{}) error {
	conn, err := b.connection(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if b.watched == nil {
		b.watched = map[dbus.ObjectPath][]chan<- struct{}{}
	}
	b.watched[path] = append(b.watched[path], changed)
	b.mu.Unlock()
	return conn.AddMatchSignalContext(ctx, changesOf(path)...)
}

// forget ends watch.
func (b *bus) forget(path dbus.ObjectPath, changed chan<- struct{}) {
	b.mu.Lock()
	b.watched[path] = slices.DeleteFunc(b.watched[path], func(c chan<- struct{}) bool { return c == changed })
	if len(b.watched[path]) == 0 {
		delete(b.watched, path)
	}
	conn := b.conn
	b.mu.Unlock()
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.RemoveMatchSignalContext(ctx, changesOf(path)...) // if it fails, the signals are ignored
	}
}

// listen passes signals on until the connection is lost.
func (b *bus) listen(conn *dbus.Conn, signals <-chan *dbus.Signal) {
	for s := range signals {
		switch s.Name {
		case propertiesName + ".PropertiesChanged":
			b.changed(s.Path)
		case busName + ".NameOwnerChanged":
			ctx, cancel := context.WithTimeout(context.Background(), slowly)
			_ = subscribeManager(ctx, conn) // if it fails, the check is still polled slowly
			cancel()
			b.allChanged()
		default:
			b.allChanged()
		}
	}
	b.mu.Lock()
	if b.conn == conn {
		b.conn = nil
	}
	b.mu.Unlock()
	b.allChanged()
}

func (b *bus) changed(path dbus.ObjectPath) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.watched[path] {
		notify(c)
	}
}

func (b *bus) allChanged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range b.watched {
		for _, c := range list {
			notify(c)
		}
	}
}

// property reads a property of a unit.
func property[T any](ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath, iface, name string) (value T, err error) {
	var v dbus.Variant
	err = conn.Object(systemdName, path).CallWithContext(ctx, propertiesName+".Get", 0, iface, name).Store(&v)
	if err != nil {
		return value, &unsureError{fmt.Errorf("cannot ask systemd for %s: %w", name, err)}
	}
	value, ok := v.Value().(T)
	if !ok {
		return value, fmt.Errorf("systemd returns %v as %s, which is of another type", v, name)
	}
	return value, nil
}

// close closes the connection.
func (b *bus) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.Close()
	}
}
