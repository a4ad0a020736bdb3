package judge

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"topdog/internal/lab/netns"
)

// Main runs the tests of a package, see Setup.
func Main(m *testing.M) {
	Setup()
	os.Exit(m.Run())
}

// Setup has as many tests of a package run at a time as the machine has slots for, unless its flags say otherwise. Boards wait for
// each other most of the time, so there may be more of them than processors.
func Setup() { _ = flag.Set("test.parallel", strconv.Itoa(netns.Slots())) }
