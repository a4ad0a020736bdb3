package pi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// newLab makes a lab whose boards stay off.
func newLab(t *testing.T, boards int) (*Lab, string) {
	t.Helper()
	netns.Reserve(t)
	m, err := FindMachine("raspi3b")
	assert.NoError(t, err)
	dir := t.TempDir()
	l, err := Create(dir, m, boards)
	assert.NoError(t, err)
	t.Cleanup(func() {
		l, err := Open(dir)
		if errors.Is(err, ErrDown) {
			return
		}
		if err == nil {
			err = l.Down()
		}
		if err != nil {
			t.Error(err)
		}
	})
	return l, dir
}

func TestLabRemembersItself(t *testing.T) {
	l, dir := newLab(t, 2)
	state := l.State
	assert.NoError(t, l.Close())
	again, err := Create(dir, l.machine, 2)
	if err != nil {
		t.Fatalf("up again: %v", err)
	}
	if diff := cmp.Diff(state, again.State); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	again.Close()
	if _, err := Create(dir, l.machine, 3); err == nil || !strings.Contains(err.Error(), "take it down first") {
		t.Errorf("another number of boards: %v", err)
	}
	last, err := Open(dir)
	assert.NoError(t, err)
	assert.NoError(t, last.Down())
	if _, err := Open(dir); !errors.Is(err, ErrDown) {
		t.Errorf("after down: %v", err)
	}
	if _, err := netns.OpenSegment(state.Segment); err == nil {
		t.Error("the namespace is left")
	}
}

func TestLabRefusesWhatIsNotThere(t *testing.T) {
	l, dir := newLab(t, 2)
	defer l.Close()
	for _, n := range []int{0, 3} {
		if _, err := l.Board(n); err == nil {
			t.Errorf("board %d of 2 exists", n)
		}
	}
	b, err := l.Board(1)
	assert.NoError(t, err)
	if b.On() {
		t.Error("a board without a card is on")
	}
	if _, err := b.Monitor(t.Context()); !errors.Is(err, errOff) {
		t.Errorf("the monitor of a board that is off: %v", err)
	}
	if err := b.PowerOn(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("switch a board without a card on: %v", err)
	}
	if _, err := FindMachine("raspi9"); err == nil || !strings.Contains(err.Error(), "raspi0, raspi3b") {
		t.Errorf("a machine that nobody has: %v", err)
	}
	assert.NoError(t, os.WriteFile(filepath.Join(dir, "lab.json"), []byte("{"), 0o600))
	l.Close()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "lab.json") {
		t.Errorf("a broken state: %v", err)
	}
	if err := l.save(); err != nil { // for the cleanup
		t.Fatal(err)
	}
}

// The light is where Deploy configures it: the last board has the board's own.
func TestLightsAndConfiguration(t *testing.T) {
	l := &Lab{State: State{Boards: 2}}
	const written = "address = \"10.99.0.250\"\n"
	for _, b := range l.Boards() {
		got := b.configuration(written)
		want := written + "# The lab of emulated boards.\nheartbeat = \"2s\"\n"
		if b.N == 1 {
			want += "led = \"GPIO17\"\n"
		}
		assert.Equal(t, want, got, "%s", b.Name())
		if again := b.configuration(got); again != got {
			t.Errorf("%s, configured again: %q", b.Name(), again)
		}
	}
}

func TestCommandLine(t *testing.T) {
	l := &Lab{State: State{Boards: 3}}
	for name, wants := range map[string][]string{
		"raspi3b": {
			"qemu-system-aarch64 -M raspi3b -name pi2 ", "console=ttyS1,115200 systemd.hostname=pi2 ip=10.99.0.2:::255.255.255.0::eth0:off:1500:b8:27:eb:00:00:02",
			"-serial chardev:shell -serial file:console.log ", "ifname=tap2,", "usb-net,port=1,netdev=cable,id=nic,mac=b8:27:eb:00:00:02",
		},
		"raspi0": {"qemu-system-arm -M raspi0 -name pi2 ", "initcall_blacklist=bcm2835_power_driver_init", "-serial chardev:shell -netdev"},
	} {
		m, err := FindMachine(name)
		assert.NoError(t, err)
		b := &Board{N: 2, Machine: m, lab: l}
		got := strings.Join(m.command(b, "tap2"), " ")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in %s", name, want, got)
			}
		}
	}
}

// Natives are on the LAN of the boards, and come before them.
func TestNatives(t *testing.T) {
	netns.Reserve(t)
	machine, err := FindMachine("raspi3b")
	assert.NoError(t, err)
	l, err := Temporary(t.TempDir(), machine, 1, 2, "/nonexistent")
	assert.NoError(t, err)
	defer func() {
		assert.ErrorIs(t, l.Close(), nil, "")
	}()
	for _, n := range l.Natives() {
		holders, err := l.Holders(t.Context(), n.Address().Addr())
		if err != nil || !slices.Equal(holders, []int{n.N}) {
			t.Errorf("%s is answered for by %v (%v), want %s", n.Address(), holders, err, n.Name())
		}
	}
	if _, err := l.Board(2); err == nil || !strings.Contains(err.Error(), "they are 3 to 3") {
		t.Errorf("a native as a board: %v", err)
	}
	b, err := l.Board(3)
	assert.NoError(t, err)
	if b.Name() != "pi3" || b.Light() != ACT {
		t.Errorf("the board after two natives is %s with its light on %s", b.Name(), b.Light())
	}
}
