package judge

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"topdog/internal/lab/netns"
)

// Main runs the tests of a package, as many at a time as the machine has slots for, unless its flags say otherwise. Boards wait for
// each other most of the time, so there may be more of them than processors.
func Main(m *testing.M) {
	_ = flag.Set("test.parallel", strconv.Itoa(netns.Slots()))
	os.Exit(m.Run())
}
