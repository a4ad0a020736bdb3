package pi

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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
	assert.NoError(t, l.Close())
	again, err := Create(dir, l.Machine, 2)
	assert.NoError(t, err)
	assert.Is(t, 2, len(again.Boards), "boards")
	again.Close()
	_, err = Create(dir, l.Machine, 3)
	assert.ErrorContains(t, err, "take it down first", "another number of boards")
	last, err := Open(dir)
	assert.NoError(t, err)
	assert.NoError(t, last.Down())
	_, err = Open(dir)
	assert.ErrorIs(t, err, ErrDown, "after down")
	if _, err := netns.OpenSegment(l.SegmentName()); err == nil {
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
	_, err = b.dialMonitor(t.Context())
	assert.ErrorIs(t, err, errOff, "the monitor of a board that is off")
	assert.ErrorIs(t, b.PowerOn(t.Context()), os.ErrNotExist, "switch a board without a card on")
	if !b.Plugged() {
		t.Error("a new board has no cable")
	}
	assert.NoError(t, b.Cable(false))
	if b.Plugged() {
		t.Error("the cable was not pulled")
	}
	_, err = FindMachine("raspi9")
	assert.ErrorContains(t, err, "raspi0, raspi3b", "a machine that nobody has")
	good, err := os.ReadFile(l.file())
	assert.NoError(t, err)
	assert.NoError(t, os.WriteFile(l.file(), []byte("{"), 0o600))
	l.Close()
	_, err = Open(dir)
	assert.ErrorContains(t, err, "remove the directory", "a broken state")
	assert.NoError(t, os.WriteFile(l.file(), good, 0o600)) // for the cleanup
}

// The light is where Deploy configures it: the last board has the board's own.
func TestLightsAndConfiguration(t *testing.T) {
	l := &Lab{}
	l.Boards = []*Board{{N: 1, lab: l}, {N: 2, lab: l}}
	const written = "address = \"10.99.0.250\"\n"
	for _, b := range l.Boards {
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
	for name, wants := range map[string][]string{
		"raspi3b": {
			"qemu-system-aarch64 -M raspi3b -name pi2 ", "console=ttyS1,115200 systemd.hostname=pi2 ip=10.99.0.2:::255.255.255.0::eth0:off:1500:b8:27:eb:00:00:02",
			"-serial chardev:shell -serial file:console.log ", "ifname=tap2,", "usb-net,port=1,netdev=cable,id=nic,mac=b8:27:eb:00:00:02",
		},
		"raspi0": {"qemu-system-arm -M raspi0 -name pi2 ", "initcall_blacklist=bcm2835_power_driver_init", "logfile=console.log -serial chardev:shell -netdev"},
	} {
		m, err := FindMachine(name)
		assert.NoError(t, err)
		b := &Board{N: 2, lab: &Lab{Machine: m}, tap: "tap2"}
		got := strings.Join(b.command(), " ")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in %s", name, want, got)
			}
		}
		b.second = "secondtap2"
		if got := strings.Join(b.command(), " "); !strings.Contains(got, "usb-hub,port=1 ") || !strings.Contains(got, "usb-net,port=1.1,") {
			t.Errorf("%s: no hub for a second adapter in %s", name, got)
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
	// Also when one of them is cut off from the others.
	for _, apart := range []int{0, 2} {
		if apart > 0 {
			assert.NoError(t, l.natives.LAN.Filter(netns.Cut(l.Native(apart).Port())...))
		}
		for n := 1; n <= l.Natives(); n++ {
			prober, err := l.Ask(l.Native(n).Addr.Addr(), 20*time.Millisecond)
			assert.NoError(t, err)
			holders, err := Holders(t.Context(), prober, time.Second)
			prober.Close()
			if err != nil || !slices.Equal(holders, []int{n}) {
				t.Errorf("%s is answered for by %v (%v), want pi%d", l.Native(n).Addr, holders, err, n)
			}
		}
	}
	_, err = l.Board(2)
	assert.ErrorContains(t, err, "they are 3 to 3", "a native as a board")
	b, err := l.Board(3)
	assert.NoError(t, err)
	if b.Name() != "pi3" || b.Light() != ACT || b.second != "secondtap3" {
		t.Errorf("the board after two natives is %s with its light on %s, and its second cable is %q", b.Name(), b.Light(), b.second)
	}
}
