package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// The names of systemd on the system bus (org.freedesktop.systemd1(5)).
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

// defaultBus is where the system bus is, unless DBUS_SYSTEM_BUS_ADDRESS says something else.
const defaultBus = "unix:path=/run/dbus/system_bus_socket"

// bus is the connection to systemd by the system bus. All unit checks share one. It is made when it is
// needed, and again after it was lost.
type bus struct {
	mu      sync.Mutex
	conn    *dbus.Conn // nil if there is none
	watched map[dbus.ObjectPath][]chan<- struct{}
}

// connection returns the connection, and makes it if there is none.
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
	// A bus that says nothing is given up when the time is over.
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

// subscribe has systemd, and the bus, send what may change the state of a unit.
func (b *bus) subscribe(ctx context.Context, conn *dbus.Conn) error {
	for _, rule := range [][]dbus.MatchOption{
		// systemd starts anew (daemon-reexec), or reads its units again.
		{dbus.WithMatchSender(busName), dbus.WithMatchInterface(busName), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, systemdName)},
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

// subscribeManager has systemd send signals at all.
func subscribeManager(ctx context.Context, conn *dbus.Conn) error {
	err := conn.Object(systemdName, managerPath).CallWithContext(ctx, managerName+".Subscribe", 0).Err
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == systemdName+".AlreadySubscribed" {
		return nil
	}
	return err
}

// changesOf matches what systemd sends when the properties of a unit change.
func changesOf(path dbus.ObjectPath) []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender(systemdName), dbus.WithMatchInterface(propertiesName),
		dbus.WithMatchMember("PropertiesChanged"), dbus.WithMatchObjectPath(path),
	}
}

// watch has somebody told when a unit may have changed.
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

// forget is the end of watch.
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
		_ = conn.RemoveMatchSignalContext(ctx, changesOf(path)...) // what still comes is of no use to anybody
	}
}

// listen tells of signals until the connection is lost.
func (b *bus) listen(conn *dbus.Conn, signals <-chan *dbus.Signal) {
	for s := range signals {
		switch s.Name {
		case propertiesName + ".PropertiesChanged":
			b.changed(s.Path)
		case busName + ".NameOwnerChanged":
			ctx, cancel := context.WithTimeout(context.Background(), slowly)
			_ = subscribeManager(ctx, conn) // if it fails, the slow poll is left
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
		return value, fmt.Errorf("systemd says %v as %s, which is something else", v, name)
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
