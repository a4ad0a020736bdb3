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

	"topdog/internal/lab/assert"
)

// allowed are all packages that the core may import. What is not here would let
// it have a clock, a socket, a goroutine, a logger or luck of its own.
var allowed = []string{
	"cmp", "errors", "fmt", "math", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
	"topdog/wire", "topdog/election/clock", "topdog/election/roster", "topdog/election/silence", "topdog/election/lease",
}

// core are the names of this package that an algorithm must not use: it has its Board.
var core = []string{"Core", "New", "Effect", "EffectKind", "Status", "Roster", "Detector"}

// clocks are what the core must not use of the package time: all that reads the
// clock of the machine or waits for it.
var clocks = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// TestPure reads the sources of this package, and of those below it, and holds what their documentation says.
func TestPure(t *testing.T) {
	for _, sources := range []string{"*.go", "clock/*.go", "roster/*.go", "silence/*.go", "lease/*.go"} {
		pure(t, sources, allowed, nil)
	}
}

// TestLiteratureApart is the same for the algorithms of the literature, which reach the
// core through their Board alone. Only the table of all algorithms makes cores.
func TestLiteratureApart(t *testing.T) {
	pure(t, "literature/*.go", append(slices.Clone(allowed), "topdog/election"), func(name, used string) bool {
		return slices.Contains(core, used) && filepath.Base(name) != "literature.go"
	})
}

// TestStepsPure is the same for the steps in which effects are carried out.
func TestStepsPure(t *testing.T) {
	pure(t, "steps/*.go", append(slices.Clone(allowed), "topdog/election"), nil)
}

// pure looks for impurities in the sources that are no tests.
func pure(t *testing.T, pattern string, imports []string, hidden func(name, used string) bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	assert.NoError(t, err)
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		looked++
		source, err := os.ReadFile(name)
		assert.NoError(t, err)
		for _, complaint := range impurities(t, name, source, imports, hidden) {
			t.Error(complaint)
		}
	}
	if looked == 0 {
		t.Error("found no sources")
	}
}

// TestImpure makes sure that these tests would notice.
func TestImpure(t *testing.T) {
	const source = `package x
import ("net"; clock "time"; . "time"; "topdog/election")
func f() { _ = clock.Now(); go f(); var _ net.IP; _ = Nanosecond; var _ *election.Core; var _ *election.Board }`
	imports := append(slices.Clone(allowed), "topdog/election")
	hidden := func(_, used string) bool { return slices.Contains(core, used) }
	if got := len(impurities(t, "x.go", []byte(source), imports, hidden)); got != 5 {
		t.Errorf("found %d faults, want 5: net, the dot, Now, go and Core", got)
	}
}

// impurities returns what a source has that it must not have. hidden says which names of
// package election it must not use; nil hides none.
func impurities(t *testing.T, name string, source []byte, imports []string, hidden func(name, used string) bool) (complaints []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	assert.NoError(t, err)
	complain := func(at token.Pos, what string) {
		complaints = append(complaints, fset.Position(at).String()+": "+what)
	}
	clock := "time"
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		assert.NoError(t, err)
		if !slices.Contains(imports, path) {
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
			x, ok := n.X.(*ast.Ident)
			switch {
			case !ok:
			case x.Name == clock && slices.Contains(clocks, n.Sel.Name),
				x.Name == "election" && hidden != nil && hidden(name, n.Sel.Name):
				complain(n.Pos(), "uses "+x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return complaints
}
