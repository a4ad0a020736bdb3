package daemon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"topdog/internal/lab/assert"
)

// TestOwnersKeepToThemselves: an owner calls methods of another one, and touches none
// of its fields, but for the reporter's log. The daemon itself reads what it needs to
// wire them together, and writes to none of them. So does the second path, which consists of a link and a group of its own.
func TestOwnersKeepToThemselves(t *testing.T) {
	owners := []string{"link", "group", "address", "reporter", "trace", "tasks", "timer", "lease", "transitions"}
	files, err := filepath.Glob("*.go")
	assert.NoError(t, err)
	set, checked := token.NewFileSet(), 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		assert.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || len(f.Recv.List[0].Names) == 0 {
				continue
			}
			checked++
			reads := receiverType(f) == "Daemon" || receiverType(f) == "secondPath"
			touches(f, owners, func(field *ast.SelectorExpr, written bool) {
				if written || !reads && field.Sel.Name != "log" {
					t.Errorf("%v: %s.%s touches %s", set.Position(field.Pos()), receiverType(f), f.Name.Name, field.Sel.Name)
				}
			})
		}
	}
	if checked < 100 {
		t.Errorf("only %d methods were checked", checked)
	}
}

func receiverType(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return of.(*ast.Ident).Name
}

// touches finds the fields of owners that a method reads or writes: x.owner.field,
// where x is the receiver.
func touches(f *ast.FuncDecl, owners []string, found func(field *ast.SelectorExpr, written bool)) {
	called, written := map[ast.Expr]bool{}, map[ast.Expr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[n.Fun] = true
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				written[left] = true
			}
		case *ast.IncDecStmt:
			written[n.X] = true
		case *ast.SelectorExpr:
			owner, ok := n.X.(*ast.SelectorExpr)
			if !ok || called[n] || !slices.Contains(owners, owner.Sel.Name) {
				return true
			}
			if x, ok := owner.X.(*ast.Ident); ok && x.Name == f.Recv.List[0].Names[0].Name {
				found(n, written[n])
			}
		}
		return true
	})
}
