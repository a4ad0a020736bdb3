package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/gpio"
	"topdog/internal/lab/assert"
)

// The command line: what is refused, how, and with which status.
func TestLedTestCommandLine(t *testing.T) {
	dir := t.TempDir()
	configured := func(name, text string) string {
		path := filepath.Join(dir, name)
		assert.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	socket := fmt.Sprintf("socket = %q\n", filepath.Join(dir, "sock"))
	none := configured("none.toml", "address = \"10.0.0.9\"\nled = \"none\"\n"+socket)
	missing := configured("missing.toml", "address = \"10.0.0.9\"\nled = \"led:nobody-has-this\"\n"+socket)
	broken := configured("broken.toml", "adress = \"10.0.0.9\"\n")
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"led", "test", "--config", none}, 1, `there is no light to test: led = "none"; name one`},
		{[]string{"led", "test", "none"}, 1, "there is no light to test"},
		{[]string{"led", "test", "--config", missing}, 1, "/sys/class/leds/nobody-has-this does not exist; there are "},
		{[]string{"led", "test", "gpio17", "--config", none}, 2, `a line is written "GPIO17"`},
		{[]string{"led", "test", "GPIO17", "GPIO18"}, 2, "topdog led test --help"},
		{[]string{"led", "test", "--each", "10ms"}, 2, "--each must be 1s to 1h0m0s, is 10ms"},
		{[]string{"led", "tset"}, 2, ""},
		{[]string{"led", "test", "--config", broken}, 78, "broken.toml:1:1"},
	} {
		t.Run(strings.Join(tc.args[:min(3, len(tc.args))], " "), func(t *testing.T) {
			execHere(t, tc.args...).want(t, tc.status, "run", tc.want)
		})
	}
}

// A machine without GPIO says so, and what else there is.
func TestLedTestWithoutGPIO(t *testing.T) {
	if chips, _ := filepath.Glob("/dev/gpiochip*"); len(chips) > 0 {
		t.Skip("this machine has GPIO chips")
	}
	got := execHere(t, "led", "test", "GPIO17", "--config", filepath.Join(t.TempDir(), "none.toml"))
	got.want(t, 1, "without GPIO", `this machine has no /dev/gpiochip*; use the board's own LED ("ACT"), or none`)
}

// cleanup looks for what a killed daemon noted also if the configuration cannot
// tell, and an LED that has gone since is no failure. (That the light of a killed
// daemon goes out is tested where there is one: gpio has the files, the emulated
// boards have the chip.)
func TestCleanupFollowsTheNotes(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, os.WriteFile(filepath.Join(dir, "led.led:nobody-has-this"), []byte("mmc0\n"), 0o644))
	lights, err := gpio.Leftovers(dir)
	if err != nil || len(lights) != 1 {
		t.Fatalf("left over: %v, %v", lights, err)
	}
	if err := gpio.DarkenLeftovers(gpio.Options{NotesIn: dir}); err != nil {
		t.Errorf("an LED that is not there any more is an error: %v", err)
	}
	broken := filepath.Join(dir, "topdog.toml")
	assert.NoError(t, os.WriteFile(broken, []byte("x"), 0o644))
	execHere(t, "cleanup", "--config", broken).want(t, exitConfig, "cleanup with a broken configuration")
}
