package lint

import (
	"cmp"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// TestExported holds that what the product's packages export is used by another package: a
// name that only its own package needs hides what a reader from outside has to know.
//
// The lab counts as a user, and so do the tests of other packages, since they reach nothing
// else. The package's own tests do not.
func TestExported(t *testing.T) {
	if testing.Short() {
		t.Skip("reads and checks the types of everything, which takes seconds")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // it makes little that can be thrown away before the end
	m := loadModule(t)
	needed := map[string]bool{}
	for _, name := range m.unused() {
		exception := name
		for exportedExceptions[exception] == "" && strings.Contains(exception, ".") {
			exception = exception[:strings.LastIndex(exception, ".")]
		}
		if exportedExceptions[exception] == "" {
			t.Errorf("%s is exported, and no other package uses it", name)
		}
		needed[exception] = true
	}
	for name := range exportedExceptions {
		if !needed[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// exportedExceptions are exported, with all that is in them, for a reason that the test does not see.
var exportedExceptions = map[string]string{
	"internal/daemon.Platform": "one struct: the demo replaces some of its fields, and the daemon's tests the others",

	"wire.Challenge":         "one of the messages, which the guard alone reads",
	"wire.Message.Challenge": "one of the messages, which the guard alone reads",
	"wire.Proof":             "one of the messages, which the guard alone reads",
	"wire.Message.Proof":     "one of the messages, which the guard alone reads",
}

// module is what the test knows of topdog's packages.
type module struct {
	files    *token.FileSet
	packages []*listedPackage          // of topdog; what is imported comes before what imports it
	checked  map[string]*types.Package // of topdog
	exports  map[string]string         // where the compiler's export data of the other packages is
	others   types.Importer            // reads it

	declared []declaration
	used     map[types.Object]bool // by another package than its own
	reached  map[types.Object]bool // types of which values get there
	methods  map[string][]method   // of interfaces, by name
}

// declaration is an exported name.
type declaration struct {
	name   string // "wire.Codec.Append"
	object types.Object
	owner  types.Type // of a method
}

// method is a method of an interface.
type method struct {
	object types.Object
	of     *types.Interface
}

// loadModule reads all of topdog.
func loadModule(t *testing.T) *module {
	t.Helper()
	m := &module{
		files:   token.NewFileSet(),
		checked: map[string]*types.Package{},
		exports: map[string]string{},
		used:    map[types.Object]bool{},
		reached: map[types.Object]bool{},
		methods: map[string][]method{},
	}
	m.others = importer.ForCompiler(m.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(m.exports[path]) })
	// What a package imports has fewer dependencies than it has, and comes before it.
	m.packages = slices.SortedFunc(maps.Values(packages(t)), func(a, b *listedPackage) int { return cmp.Compare(len(a.Deps), len(b.Deps)) })
	var others []string
	for _, p := range m.packages {
		others = slices.Concat(others, p.Imports, p.TestImports, p.XTestImports)
	}
	others = slices.DeleteFunc(others, func(path string) bool { return strings.HasPrefix(path, "topdog/") })
	// The compiler has to make the export data, so none is asked for of topdog's packages, which are read from their sources.
	exported, err := list(append([]string{"-deps", "-export"}, slices.Compact(slices.Sorted(slices.Values(others)))...)...)
	assert.NoError(t, err)
	for _, p := range exported {
		if p.Export != "" {
			m.exports[p.ImportPath] = p.Export
		}
	}

	// The bodies can wait until every package is known.
	inside := map[*listedPackage][]*ast.File{}
	for _, p := range m.packages {
		inside[p] = m.parse(t, p, p.GoFiles)
		m.checked[p.ImportPath] = m.check(p.ImportPath, inside[p], false)
		m.declare(m.checked[p.ImportPath])
	}
	for _, p := range m.packages {
		m.check(p.ImportPath, append(m.parse(t, p, p.TestGoFiles), inside[p]...), true)
		m.check(p.ImportPath+"_test", m.parse(t, p, p.XTestGoFiles), true)
	}
	m.addInterface(types.Universe.Lookup("error").Type())
	for path := range m.exports {
		if pkg, err := m.others.Import(path); err == nil { // package unsafe has no export data
			m.addInterfaces(pkg.Scope())
		}
	}
	return m
}

// Import finds a package for one that imports it.
func (m *module) Import(path string) (*types.Package, error) {
	if p := m.checked[path]; p != nil {
		return p, nil
	}
	return m.others.Import(path)
}

// parse reads files of a package.
func (m *module) parse(t *testing.T, p *listedPackage, names []string) (files []*ast.File) {
	t.Helper()
	for _, name := range names {
		file, err := parser.ParseFile(m.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		assert.NoError(t, err)
		files = append(files, file)
	}
	return files
}

// check notes what the files of a package use of other packages.
func (m *module) check(path string, files []*ast.File, bodies bool) *types.Package {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	// Errors are for the compiler to find. What a package's tests export to its external
	// tests is missing here, for example, and is nobody else's.
	config := types.Config{Importer: m, Error: func(error) {}, IgnoreFuncBodies: !bodies}
	pkg, _ := config.Check(path, m.files, files, info)
	for _, object := range info.Uses {
		m.use(object, path)
	}
	for expr, tv := range info.Types {
		switch expr := expr.(type) {
		case *ast.CompositeLit:
			m.useLiteral(expr, tv.Type, path)
		case *ast.InterfaceType:
			m.addInterface(tv.Type)
		}
	}
	return pkg
}

// use notes that the package uses the object, if it is another's.
func (m *module) use(object types.Object, path string) {
	switch o := object.(type) {
	case *types.Func:
		object = o.Origin()
	case *types.Var:
		object = o.Origin()
	}
	if object.Pkg() != nil && object.Pkg().Path() != strings.TrimSuffix(path, "_test") {
		m.used[object] = true
	}
}

// useLiteral notes the fields that a literal sets without naming them.
func (m *module) useLiteral(literal *ast.CompositeLit, of types.Type, path string) {
	fields, ok := of.Underlying().(*types.Struct)
	if !ok || len(literal.Elts) == 0 {
		return
	}
	if _, named := literal.Elts[0].(*ast.KeyValueExpr); !named {
		for field := range fields.Fields() {
			m.use(field, path)
		}
	}
}

// addInterfaces notes the methods of the interfaces that a package has names for.
func (m *module) addInterfaces(scope *types.Scope) {
	for _, name := range scope.Names() {
		if named, ok := scope.Lookup(name).(*types.TypeName); ok && types.IsInterface(named.Type()) {
			m.addInterface(named.Type())
		}
	}
}

// addInterface notes the methods of an interface.
func (m *module) addInterface(t types.Type) {
	of, ok := t.Underlying().(*types.Interface)
	if !ok || !of.IsMethodSet() {
		return
	}
	for f := range of.Methods() {
		m.methods[f.Name()] = append(m.methods[f.Name()], method{f, of})
	}
}

// declare notes what a package exports.
func (m *module) declare(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		full := strings.TrimPrefix(pkg.Path(), "topdog/") + "." + name
		m.declared = append(m.declared, declaration{name: full, object: object})
		named, ok := object.Type().(*types.Named)
		if _, isType := object.(*types.TypeName); !isType || !ok {
			continue
		}
		for f := range named.Methods() {
			m.declared = append(m.declared, declaration{name: full + "." + f.Name(), object: f, owner: named})
		}
		switch under := named.Underlying().(type) {
		case *types.Interface:
			for f := range under.ExplicitMethods() {
				m.declared = append(m.declared, declaration{name: full + "." + f.Name(), object: f})
			}
		case *types.Struct:
			for i := range under.NumFields() {
				// A field with a tag is for whoever encodes the struct, and an embedded one is there
				// for what it promotes.
				if f := under.Field(i); under.Tag(i) == "" && !f.Embedded() {
					m.declared = append(m.declared, declaration{name: full + "." + f.Name(), object: f})
				}
			}
		}
	}
}

// unused returns the names that are exported for nobody, sorted.
func (m *module) unused() []string {
	for object := range maps.Clone(m.used) {
		m.reach(object.Type())
	}
	for _, d := range m.declared {
		// The methods that make a type fit for somebody else's interface.
		if d.owner != nil && !m.used[d.object] && m.implements(d) {
			m.used[d.object] = true
			m.reach(d.object.Type())
		}
	}
	var names []string
	for _, d := range m.declared {
		lab := strings.HasPrefix(d.name, "internal/lab/") || strings.HasPrefix(d.name, "scripts/") || strings.HasPrefix(d.name, "cmd/")
		if !lab && !m.used[d.object] && d.object.Exported() {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return names
}

// reach notes what another package has to know to use a value of the type: the types in it,
// the members of an enumeration, and the methods that it calls or implements through an interface.
// The fields and methods of other types it has to use itself.
func (m *module) reach(t types.Type) {
	switch t := t.(type) {
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel or a map
		m.reach(t.Elem())
		if mapped, ok := t.(*types.Map); ok {
			m.reach(mapped.Key())
		}
	case *types.Signature:
		m.reach(t.Params())
		m.reach(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			m.reach(v.Type())
		}
	case *types.Interface:
		for f := range t.Methods() {
			m.used[f] = true
			m.reach(f.Type())
		}
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			m.reach(arg)
		}
		name := t.Origin().Obj()
		if name.Pkg() == nil || m.checked[name.Pkg().Path()] != name.Pkg() || m.reached[name] {
			return
		}
		m.reached[name], m.used[name] = true, true
		m.reach(t.Underlying())
		for _, d := range m.declared {
			if c, ok := d.object.(*types.Const); ok && c.Type() == t {
				m.used[c] = true
			}
		}
	}
}

// implements tells whether the method is there for an interface of another package, or for
// one whose method another package calls.
func (m *module) implements(d declaration) bool {
	if slices.Contains([]string{"Is", "As", "Unwrap"}, d.object.Name()) {
		return true // what package errors asks for in interfaces without a name
	}
	for _, i := range m.methods[d.object.Name()] {
		foreign := i.object.Pkg() != d.object.Pkg()
		if (foreign || m.used[i.object]) && (types.Implements(d.owner, i.of) || types.Implements(types.NewPointer(d.owner), i.of)) {
			return true
		}
	}
	return false
}
