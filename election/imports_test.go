package election

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowed are all packages that the core may import. What is not here would let
// it have a clock, a socket, a goroutine, a logger or luck of its own.
var allowed = []string{
	"errors", "fmt", "math", "slices", "sort", "strings", "time", "unicode", "unicode/utf8",
	"topdog/wire",
}

// clocks are what the core must not use of the package time: all that reads the
// clock of the machine or waits for it.
var clocks = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// TestPure reads the sources of this package and holds what its documentation says.
func TestPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		looked++
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range impurities(t, name, source) {
			t.Error(complaint)
		}
	}
	if looked == 0 {
		t.Error("found no sources")
	}
}

// TestImpure makes sure that TestPure would notice.
func TestImpure(t *testing.T) {
	const source = `package x
import ("net"; clock "time"; . "time")
func f() { _ = clock.Now(); go f(); var _ net.IP; _ = Nanosecond }`
	if got := len(impurities(t, "x.go", []byte(source))); got != 4 {
		t.Errorf("found %d faults, want 4: net, the dot, Now and go", got)
	}
}

// impurities returns what a source has that the core must not have.
func impurities(t *testing.T, name string, source []byte) (complaints []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	complain := func(at token.Pos, what string) {
		complaints = append(complaints, fset.Position(at).String()+": "+what)
	}
	clock := "time"
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(allowed, path) {
			complain(spec.Pos(), "imports "+path)
		}
		if spec.Name != nil {
			if spec.Name.Name == "." {
				complain(spec.Pos(), "hides where names of "+path+" come from")
			} else if path == "time" {
				clock = spec.Name.Name
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			complain(n.Pos(), "starts a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == clock && slices.Contains(clocks, n.Sel.Name) {
				complain(n.Pos(), "uses "+clock+"."+n.Sel.Name)
			}
		}
		return true
	})
	return complaints
}
