package pi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		assert.NoError(t, err)
		assert.NoError(t, l.Down())
	})
	return l, dir
}

func TestLabRemembersItself(t *testing.T) {
	l, dir := newLab(t, 2)
	state := l.State
	assert.NoError(t, l.Close())
	again, err := Create(dir, l.machine, 2)
	assert.NoError(t, err)
	assert.Equal(t, state, again.State, "before, and after")
	again.Close()
	_, err = Create(dir, l.machine, 3)
	assert.ErrorContains(t, err, "take it down first", "another number of boards")
	last, err := Open(dir)
	assert.NoError(t, err)
	assert.NoError(t, last.Down())
	_, err = Open(dir)
	assert.ErrorIs(t, err, ErrDown, "after down")
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
	_, err = b.Monitor(t.Context())
	assert.ErrorIs(t, err, errOff, "the monitor of a board that is off")
	assert.ErrorIs(t, b.PowerOn(), os.ErrNotExist, "switch a board without a card on")
	_, err = FindMachine("raspi9")
	assert.ErrorContains(t, err, "raspi0, raspi3b", "a machine that nobody has")
	assert.NoError(t, os.WriteFile(filepath.Join(dir, "lab.json"), []byte("{"), 0o600))
	l.Close()
	_, err = Open(dir)
	assert.ErrorContains(t, err, "lab.json", "a broken state")
	assert.NoError(t, l.save()) // for the cleanup
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
		assert.Is(t, got, b.configuration(got), "%s, configured again", b.Name())
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
	defer func() { assert.ErrorIs(t, l.Close(), nil, "") }()
	for _, n := range l.Natives() {
		holders, err := l.Holders(t.Context(), n.Address().Addr())
		if err != nil || !slices.Equal(holders, []int{n.N}) {
			t.Errorf("%s is answered for by %v (%v), want %s", n.Address(), holders, err, n.Name())
		}
	}
	_, err = l.Board(2)
	assert.ErrorContains(t, err, "they are 3 to 3", "a native as a board")
	b, err := l.Board(3)
	assert.NoError(t, err)
	if b.Name() != "pi3" || b.Light() != ACT {
		t.Errorf("the board after two natives is %s with its light on %s", b.Name(), b.Light())
	}
}
