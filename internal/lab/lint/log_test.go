package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/web"
)

// readDoc reads a file of docs, with all white space made single.
func readDoc(t *testing.T, name string) string {
	t.Helper()
	return strings.Join(strings.Fields(pageOf(t, name)), " ")
}

// Whoever finds a line of the log at info or above finds it in the manual: its fixed part, with … for what is filled in.
// So does whoever looks into the log of the hooks, and into that of the page.
func TestEveryLogLineIsDocumented(t *testing.T) {
	for _, log := range []struct {
		doc      string
		few      int // if it finds fewer, this test looks in the wrong place
		patterns []string
	}{
		{"operations.md", 25, []string{"internal/daemon/*.go", "cmd/topdog/run.go", "election/effect.go"}},
		{"hooks.md", 8, []string{"internal/hooks/*.go"}},
		{"page.md", 4, []string{"internal/page/*.go", "internal/web/*.go"}},
	} {
		doc, lines := readDoc(t, log.doc), map[string]string{}
		for _, pattern := range log.patterns {
			files, err := filepath.Glob("../../../" + pattern)
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v, %v", pattern, files, err)
			}
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					collectLines(t, file, lines)
				}
			}
		}
		if len(lines) < log.few {
			t.Errorf("docs/%s: only %d lines were found in the sources", log.doc, len(lines))
		}
		for line, where := range lines {
			if !strings.Contains(doc, line) {
				t.Errorf("%s: docs/%s does not explain the line\n\t%s", where, log.doc, line)
			}
		}
	}
}

var (
	verb    = regexp.MustCompile(`"?%[+#]?[a-z]"?`)
	letters = regexp.MustCompile(`[a-z]{4}`)
)

// collectLines finds the formats that are logged, or made into a text for the
// log, in one file.
func collectLines(t *testing.T, file string, lines map[string]string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, 0)
	assert.NoError(t, err)
	take := func(e ast.Expr) {
		literal, ok := e.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		text, err := strconv.Unquote(literal.Value)
		assert.NoError(t, err)
		line := strings.TrimSpace(verb.ReplaceAllString(text, "…"))
		line = strings.TrimSpace(strings.TrimSuffix(line, "\n…"))
		if letters.MatchString(line) {
			lines[line] = files.Position(literal.Pos()).String()
		}
	}
	logs := map[string]bool{"Info": true, "Infof": true, "Warn": true, "Warnf": true, "Error": true, "Errorf": true}
	for _, declaration := range parsed.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		// Functions whose whole purpose is a line for the log.
		describes := f.Name.Name == "describe" || f.Name.Name == "drop" || f.Name.Name == "String" && isMethodOf(f, "Notice")
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			isLog := logs[s.Sel.Name] && strings.HasSuffix(strings.ToLower(receiver(s.X)), "log")
			if isLog || describes && s.Sel.Name == "Sprintf" {
				take(call.Args[0])
			}
			return true
		})
	}
}

func isMethodOf(f *ast.FuncDecl, name string) bool {
	if f.Recv == nil || len(f.Recv.List) != 1 {
		return false
	}
	of, ok := f.Recv.List[0].Type.(*ast.Ident)
	return ok && of.Name == name
}

// receiver names what a method is called on: "n.log", "log".
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return receiver(e.X) + "." + e.Sel.Name
	}
	return ""
}

// The limits of the page are those of the manual.
func TestTheLimitsOfThePageAreDocumented(t *testing.T) {
	doc, l := readDoc(t, "page.md"), web.DefaultLimits
	for _, row := range []string{
		fmt.Sprintf("| connections | %d, of which %d from one address |", l.Connections, l.PerAddress),
		fmt.Sprintf("| a request | %.0f s to arrive, %d KiB of header", l.Request.Seconds(), l.HeaderBytes>>10),
		fmt.Sprintf("| an answer | %.0f s to be taken", l.Write.Seconds()),
		fmt.Sprintf("| a connection on which nothing is asked | %.0f s |", l.Idle.Seconds()),
	} {
		if !strings.Contains(doc, row) {
			t.Errorf("docs/page.md does not say %q", row)
		}
	}
}
