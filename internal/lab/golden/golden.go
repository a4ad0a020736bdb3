// Package golden compares what a test has made with a file of the repository. The flag -update writes
// these files anew, in every package that has some.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update tells whether the golden files are written anew, for a test that has another way to compare them.
var Update = flag.Bool("update", false, "write the golden files anew; read the difference")

// Compare fails the test if the file is not what the test has got.
func Compare(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got); if that is right, run go test -update, and read the difference:\n%s", path, diff)
	}
}
