package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"topdog/internal/lab/assert"
)

// fakeSystemd is systemd as far as a check sees it, on a bus of its own.
type fakeSystemd struct {
	t          *testing.T
	conn       *dbus.Conn
	mu         sync.Mutex
	units      map[dbus.ObjectPath]*fakeUnit
	subscribed int
	onMainPID  func() // called when the main process of a unit is asked for
}

type fakeUnit struct {
	id, load, active string
	main             uint32
}

// startBus starts a bus, and has the checks of this test use it.
func startBus(t *testing.T) (address string, end func()) {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skipf("needs dbus-daemon, of the package dbus: %v", err)
	}
	dir := t.TempDir()
	address = "unix:path=" + filepath.Join(dir, "bus")
	config := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, []byte(`<busconfig><listen>`+address+`</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--config-file="+config, "--nofork", "--print-address")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, c.Start())
	var once sync.Once
	end = func() { once.Do(func() { c.Process.Kill(); c.Wait() }) }
	t.Cleanup(end)
	if _, err := out.Read(make([]byte, 1)); err != nil { // it listens
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	return address, end
}

// startSystemd starts a systemd on a bus.
func startSystemd(t *testing.T, address string) *fakeSystemd {
	t.Helper()
	conn, err := dbus.Connect(address)
	assert.NoError(t, err)
	s := &fakeSystemd{t: t, conn: conn, units: map[dbus.ObjectPath]*fakeUnit{}}
	t.Cleanup(func() { conn.Close() })
	assert.NoError(t, conn.ExportMethodTable(map[string]any{"Subscribe": s.subscribe}, managerPath, managerName))
	_, err = conn.RequestName(systemdName, dbus.NameFlagReplaceExisting)
	assert.NoError(t, err)
	return s
}

func (s *fakeSystemd) subscribe() *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribed++
	return nil
}

// set gives a unit a state, and tells whoever listens.
func (s *fakeSystemd) set(name string, u fakeUnit, tell bool) {
	s.t.Helper()
	path := unitPath(name)
	s.mu.Lock()
	_, known := s.units[path]
	if u.id == "" {
		u.id = name
	}
	if u.load == "" {
		u.load = "loaded"
	}
	s.units[path] = &u
	s.mu.Unlock()
	if !known {
		get := func(iface, name string) (dbus.Variant, *dbus.Error) { return s.get(path, iface, name) }
		assert.NoError(s.t, s.conn.ExportMethodTable(map[string]any{"Get": get}, path, propertiesName))
	}
	if tell {
		assert.NoError(s.t, s.conn.Emit(path, propertiesName+".PropertiesChanged", unitName, map[string]dbus.Variant{}, []string{"ActiveState"}))
	}
}

func (s *fakeSystemd) get(path dbus.ObjectPath, iface, name string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	u := *s.units[path]
	asked := s.onMainPID
	s.mu.Unlock()
	switch iface + "." + name {
	case unitName + ".Id":
		return dbus.MakeVariant(u.id), nil
	case unitName + ".LoadState":
		return dbus.MakeVariant(u.load), nil
	case unitName + ".ActiveState":
		return dbus.MakeVariant(u.active), nil
	case serviceName + ".MainPID":
		if asked != nil {
			asked()
		}
		return dbus.MakeVariant(u.main), nil
	}
	return dbus.Variant{}, dbus.MakeFailedError(fmt.Errorf("no property %s of %s", name, iface))
}

// watched is a unit check under test.
type watched struct {
	t *testing.T
	*unitProber
}

func watchUnit(t *testing.T, name string) watched {
	w := watched{t, newUnitProber(&Check{Kind: Unit, Target: name})}
	t.Cleanup(w.close)
	return w
}

// expect runs the check once.
func (w watched) expect(step, part string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	assert.ErrorContains(w.t, w.probe(ctx), part, "%s", step)
}

// await waits until the check is told of a change.
func (w watched) await(what string) {
	w.t.Helper()
	changed(w.t, w, what)
}

// becomes gives the unit a state, waits until the check is told, and runs it.
func (w watched) becomes(s *fakeSystemd, name string, u fakeUnit, part string) {
	w.t.Helper()
	s.set(name, u, true)
	w.await("it is " + u.active)
	w.expect(u.active, part)
}

// start starts a process that waits to be killed.
func start(t *testing.T) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Skipf("needs sleep: %v", err)
	}
	return sleeps(t, path)
}

func TestUnit(t *testing.T) {
	address, _ := startBus(t)
	s := startSystemd(t, address)
	const name = "pihole-FTL.service"
	s.set(name, fakeUnit{active: "inactive"}, false)
	w := watchUnit(t, name)
	w.expect("not started", "systemd says that it is inactive")
	first, second := start(t), start(t)
	for _, state := range []string{"activating", "deactivating", "failed", "maintenance"} {
		w.becomes(s, name, fakeUnit{active: state, main: uint32(first.Process.Pid)}, "systemd says that it is "+state)
	}
	w.becomes(s, name, fakeUnit{active: "active", main: uint32(first.Process.Pid)}, "")

	// Its main process dies: that is known before systemd knows.
	first.Process.Kill()
	w.await("its main process has ended")
	w.expect("dead", fmt.Sprintf("its main process %d has ended", first.Process.Pid))
	w.expect("dead, and systemd does not know", fmt.Sprintf("its main process %d has ended", first.Process.Pid))
	w.becomes(s, name, fakeUnit{active: "activating"}, "systemd says that it is activating")
	w.becomes(s, name, fakeUnit{active: "active", main: uint32(second.Process.Pid)}, "")

	// It changes its main process, as a server does when it is updated in place.
	third := start(t)
	w.becomes(s, name, fakeUnit{active: "reloading", main: uint32(third.Process.Pid)}, "")
	assert.Is(t, third.Process.Pid, w.main.pid, "the process that is watched")

	for load, part := range map[string]string{"not-found": "systemd knows no unit of this name", "masked": "systemd says that it is masked"} {
		w.becomes(s, name, fakeUnit{load: load, active: "inactive"}, part)
	}
}

// TestUnitOfOtherTypes: without a main process, systemd alone is asked.
func TestUnitOfOtherTypes(t *testing.T) {
	address, _ := startBus(t)
	s := startSystemd(t, address)
	s.set("data.mount", fakeUnit{active: "active"}, false)
	s.set("once.service", fakeUnit{active: "active"}, false)
	watchUnit(t, "data.mount").expect("a mount", "")
	watchUnit(t, "once.service").expect("a service that has done its work", "")
}

// TestUnitByAnotherName: the signals come from the unit's own name.
func TestUnitByAnotherName(t *testing.T) {
	address, _ := startBus(t)
	s := startSystemd(t, address)
	s.set("named.service", fakeUnit{active: "active"}, false)
	s.set("bind9.service", fakeUnit{id: "named.service", active: "active"}, false)
	w := watchUnit(t, "bind9.service")
	w.expect("by its alias", "")
	w.becomes(s, "named.service", fakeUnit{active: "failed"}, "systemd says that it is failed")
}

// TestUnitWhoseProcessIsReplaced: between the answer and the call, the process is replaced by another one. The number
// is read again, so that no stranger is watched.
func TestUnitWhoseProcessIsReplaced(t *testing.T) {
	address, _ := startBus(t)
	s := startSystemd(t, address)
	stranger, mine := start(t), start(t)
	s.set("a.service", fakeUnit{active: "active", main: uint32(stranger.Process.Pid)}, false)
	s.mu.Lock()
	asked := 0
	s.onMainPID = func() {
		if asked++; asked == 1 { // while the answer is on its way
			s.set("a.service", fakeUnit{active: "active", main: uint32(mine.Process.Pid)}, false)
		}
	}
	s.mu.Unlock()
	w := watchUnit(t, "a.service")
	w.expect("active", "")
	w.await("its process was replaced")
	w.expect("active", "")
	assert.Is(t, mine.Process.Pid, w.main.pid, "the process that is watched")
}

// TestUnitWhoseProcessIsGone: a process that has ended before it could be watched.
func TestUnitWhoseProcessIsGone(t *testing.T) {
	address, _ := startBus(t)
	s := startSystemd(t, address)
	gone := start(t)
	gone.Process.Kill()
	gone.Wait()
	s.set("a.service", fakeUnit{active: "active", main: uint32(gone.Process.Pid)}, false)
	w := watchUnit(t, "a.service")
	w.expect("gone", fmt.Sprintf("its main process %d has ended", gone.Process.Pid))
}

// TestSystemdStartsAnew: systemd leaves the bus and comes back, as in daemon-reexec, and does not know who
// has subscribed.
func TestSystemdStartsAnew(t *testing.T) {
	address, _ := startBus(t)
	s := startSystemd(t, address)
	s.set("a.service", fakeUnit{active: "active"}, false)
	w := watchUnit(t, "a.service")
	w.expect("active", "")
	s.conn.Close()
	w.await("systemd has left")
	s = startSystemd(t, address)
	s.set("a.service", fakeUnit{active: "active"}, false)
	w.await("systemd is back")
	w.expect("active again", "")
	assert.Until(t, "somebody subscribes again", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.subscribed > 0
	})
	w.becomes(s, "a.service", fakeUnit{active: "failed"}, "systemd says that it is failed")
}

// TestBusIsLost: the bus ends, and comes back.
func TestBusIsLost(t *testing.T) {
	address, end := startBus(t)
	s := startSystemd(t, address)
	s.set("a.service", fakeUnit{active: "active"}, false)
	w := watchUnit(t, "a.service")
	w.expect("active", "")
	end()
	w.await("the bus is lost")
	w.expect("lost", "cannot ask systemd: connect to the system bus")
	address, _ = startBus(t)
	s = startSystemd(t, address)
	s.set("a.service", fakeUnit{active: "active"}, false)
	w.expect("back", "")
	w.becomes(s, "a.service", fakeUnit{active: "failed"}, "systemd says that it is failed")
}

func TestNoBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "nothing"))
	w := watchUnit(t, "a.service")
	w.expect("no bus", "install the package dbus")
	address, _ := startBus(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	w.expect("no systemd", "cannot ask systemd")
}

// TestSilentBus: one that accepts a connection and says nothing does not hold the check up.
func TestSilentBus(t *testing.T) {
	l := listenUnix(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+l)
	c := Check{Kind: Unit, Target: "a.service", Timeout: 50 * time.Millisecond}
	w := watchUnit(t, "a.service")
	began := time.Now()
	err := probe(t.Context(), &c, w.unitProber)
	if err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if errors.Is(err, context.Canceled) {
		t.Errorf("the reason is %v", err)
	}
}

func TestUnitPath(t *testing.T) {
	for name, want := range map[string]dbus.ObjectPath{
		"nginx.service":          "/org/freedesktop/systemd1/unit/nginx_2eservice",
		"pihole-FTL.service":     "/org/freedesktop/systemd1/unit/pihole_2dFTL_2eservice",
		"getty@tty1.service":     "/org/freedesktop/systemd1/unit/getty_40tty1_2eservice",
		"9p.mount":               "/org/freedesktop/systemd1/unit/_39p_2emount",
		`dev-disk-by\x2did.swap`: "/org/freedesktop/systemd1/unit/dev_2ddisk_2dby_5cx2did_2eswap",
	} {
		assert.Is(t, want, unitPath(name), "%s", name)
	}
}
