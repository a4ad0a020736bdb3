package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"topdog/internal/lab/assert"
)

// The imports run one way: a package that could reach for a socket or a clock
// would soon be tested with one.
var importRules = []struct {
	packages string   // the path of a package
	only     []string // of topdog and of other modules; the standard library is free
	never    []string // also not by way of others
	why      string
}{
	{"topdog/wire", nil, []string{"net", "os/exec"}, "bytes <-> messages, nothing else"},
	{"topdog/election/clock", nil, []string{"net", "os/exec", "log"}, "a point in time is a value"},
	{"topdog/election/roster", []string{"topdog/wire", "topdog/election/clock"}, []string{"net", "os/exec", "log"}, "who is there is asked, and calls nobody back"},
	{"topdog/election/silence", []string{"topdog/wire", "topdog/election/clock"}, []string{"net", "os/exec", "log"}, "when a leader is late is asked, and calls nobody back"},
	{"topdog/election/lease", []string{"topdog/wire", "topdog/election/clock", "topdog/election/silence"}, []string{"net", "os/exec", "log"}, "until when a board may lead is asked, and calls nobody back"},
	{"topdog/election", []string{"topdog/wire", "topdog/election/"}, []string{"net", "os/exec", "log", "topdog/election/literature"}, "the core is pure"},
	{"topdog/election/record", []string{"topdog/wire", "topdog/election"}, []string{"net", "os/exec", "log", "topdog/election/literature"}, "what a core was told is recorded without a look at the clock or at the network"},
	{"topdog/election/literature", []string{"topdog/wire", "topdog/election", "topdog/election/silence"}, []string{"net", "os/exec", "log"}, "an algorithm reaches the core through its board"},
	{"topdog/election/steps", []string{"topdog/wire", "topdog/election"}, []string{"net", "os/exec", "log"}, "the order of steps does not depend on who takes them"},
	{"topdog/internal/lab/sim", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/lab/scene"}, []string{"net", "os/exec", "log"}, "the simulator runs the core and nothing real"},
	{"topdog/internal/lab/corescene", []string{"topdog/wire"}, []string{"testing", "topdog/election"}, "the tests of the core use the language of its scenes"},
	{"topdog/internal/lab/replay", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/lab/corescene"}, []string{"testing", "net", "os/exec"}, "what was recorded is played without a network"},
	{"topdog/internal/lab/draw", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/lab/sim", "topdog/internal/lab/svg"}, []string{"net", "os/exec", "text/template"}, "a picture is made of what the simulator tells"},
	{"topdog/internal/lab/scenario", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/lab/"}, []string{"net", "os/exec"}, "a scenario is played in the simulator"},
	{"topdog/internal/lab/papers", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/lab/sim", "topdog/internal/lab/scenario", "topdog/internal/lab/scene"}, []string{"net", "os/exec"}, "the papers' figures are measured in the simulator"},
	{"topdog/internal/lab/compare", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/lab/"}, []string{"net", "os/exec", "text/template"}, "algorithms are compared in the simulator"},
	{"topdog/internal/lab/simpage", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/web", "topdog/internal/lab/", "github.com/pelletier/go-toml/", "github.com/spf13/pflag"}, []string{"os/exec", "text/template", "html/template"}, "the page shows what the simulator does, and acts on nothing"},
	{"topdog/internal/lab/animation", []string{"topdog/election/literature", "topdog/internal/lab/demo", "topdog/internal/lab/svg"}, []string{"text/template"}, "the moving picture is made of what the demo has recorded"},
	{"topdog/internal/lab/svg", nil, []string{"net", "os/exec", "text/template"}, "how a picture is written has nothing to do with what is in it"},
	{"topdog/internal/boottime", []string{"golang.org/x/sys/"}, []string{"net", "os/exec", "log"}, "a clock is read, whatever it is for"},
	{"topdog/netio", []string{"github.com/vishvananda/", "golang.org/x/", "topdog/wire", "topdog/internal/boottime"}, nil, "the network knows no election"},
	{"topdog/gpio", []string{"periph.io/x/", "golang.org/x/sys/"}, nil, "the light knows no election"},
	{"topdog/systemd", []string{"github.com/coreos/go-systemd/", "golang.org/x/sys/"}, []string{"net/http"}, "the glue to systemd knows no election"},
	{"topdog/internal/seccomp", []string{"golang.org/x/net/bpf", "golang.org/x/sys/"}, []string{"os/exec"}, "what the kernel refuses has nothing to do with what is done"},
	{"topdog/internal/health", []string{"topdog/internal/check", "topdog/wire"}, nil, "a grade is made of what is known, in a time that is given"},
	{"topdog/internal/config", []string{"topdog/election", "topdog/election/", "topdog/gpio", "topdog/netio", "topdog/wire", "topdog/internal/check", "topdog/internal/health", "github.com/pelletier/go-toml/", "github.com/sirupsen/logrus", "golang.org/x/net/dns/dnsmessage", "golang.org/x/sys/"}, nil, "the configuration knows what it configures, and no daemon"},
	{"topdog/internal/setup/keepalived", []string{"topdog/election", "topdog/internal/config", "topdog/internal/check"}, nil, "a text becomes another text"},
	{"topdog/internal/setup", []string{"topdog/gpio", "topdog/netio", "topdog/internal/config", "topdog/internal/setup/keepalived", "github.com/vishvananda/netns", "golang.org/x/"}, nil, "a board is set up without a daemon"},
	{"topdog/internal/rekey", []string{"topdog/election/roster", "topdog/internal/config", "topdog/internal/console", "topdog/internal/setup", "topdog/wire", "golang.org/x/sys/"}, nil, "a key is changed in a file, as far as the daemon says that it may be"},
	{"topdog/internal/examine", []string{"topdog/gpio", "topdog/internal/config", "topdog/internal/console", "topdog/internal/daemon", "topdog/netio", "topdog/wire"}, nil, "what the daemon would refuse, the daemon is asked about"},
	{"topdog/internal/console", []string{"topdog/internal/boottime", "topdog/internal/web", "golang.org/x/sys/", "golang.org/x/term"}, []string{"text/template", "html/template", "net/http/pprof"}, "what people are shown is data"},
	{"topdog/internal/web", nil, []string{"text/template", "html/template", "net/http/pprof"}, "what all that answers by HTTP shares knows nothing of boards"},
	{"topdog/internal/page", []string{"topdog/election", "topdog/internal/boottime", "topdog/internal/console", "topdog/internal/web", "topdog/wire", "github.com/sirupsen/logrus"}, []string{"text/template", "html/template", "net/http/pprof", "os/exec"}, "a page knows what the daemon says, and its words, and nothing else"},
	{"topdog/internal/hooks", []string{"topdog/internal/console", "github.com/sirupsen/logrus", "golang.org/x/sys/"}, nil, "what runs because of the board knows the stream of its daemon, and nothing else"},
	{"topdog/internal/lab/frame", []string{"golang.org/x/sys/"}, []string{"testing"}, "frames are bytes, whoever sends them"},
	{"topdog/internal/lab/observe", []string{"topdog/internal/lab/frame", "golang.org/x/net/ipv4", "golang.org/x/sys/"}, []string{"testing"}, "whoever watches a cluster knows nothing of its boards"},
	{"topdog/internal/lab/netns", []string{"topdog/internal/lab/frame", "topdog/internal/lab/observe", "github.com/google/", "github.com/prometheus/procfs", "github.com/vishvananda/", "golang.org/x/sys/"}, []string{"testing"}, "a LAN for tests, demo and benchmarks that knows nothing of topdog"},
	{"topdog/internal/lab/cluster", []string{"golang.org/x/sys/", "topdog/election", "topdog/wire", "topdog/internal/config", "topdog/internal/console", "topdog/internal/lab/netns", "topdog/internal/lab/observe", "topdog/internal/lab/scene"}, []string{"testing"}, "tests, demo and benchmarks run daemons alike, and from outside"},
	{"topdog/internal/lab/scene", []string{"topdog/election"}, []string{"net", "os/exec", "testing"}, "a scene is data, whatever it is played on"},
	{"topdog/internal/lab/attack", []string{"topdog/wire", "topdog/election", "topdog/election/", "topdog/internal/config", "topdog/internal/lab/", "github.com/prometheus/procfs", "golang.org/x/sys/"}, []string{"testing"}, "an adversary has no part of the daemon; the configuration reads the key of which it plays recordings"},
	{"topdog/internal/lab/webpage", []string{"topdog/internal/web"}, []string{"testing"}, "what the pages share has nothing to do with what is on them"},
	{"topdog/internal/lab/demopage", []string{"topdog/internal/web", "topdog/internal/lab/webpage", "topdog/internal/seccomp", "golang.org/x/sys/"}, []string{"testing", "topdog/internal/daemon", "text/template"}, "what talks to browsers knows nothing of boards"},
	{"topdog/cmd/topdog", nil, []string{"testing", "html/template", "net/http/pprof", "github.com/google/go-cmp/cmp"}, "no test code in the daemon, and nothing large that nobody asked for"},
}

func TestImports(t *testing.T) {
	all := packages(t)
	for _, rule := range importRules {
		t.Run(rule.packages, func(t *testing.T) {
			p, found := all[rule.packages]
			if !found {
				t.Fatal("there is no such package")
			}
			for _, path := range append(p.Deps, rule.packages) {
				if slices.Contains(rule.never, path) {
					t.Errorf("%s depends on %s: %s", rule.packages, path, rule.why)
				}
			}
			if rule.packages == "topdog/cmd/topdog" {
				return
			}
			for _, path := range p.Imports {
				first, _, _ := strings.Cut(path, "/")
				if external := strings.Contains(first, ".") || first == "topdog"; external && !hasPrefix(rule.only, path) {
					t.Errorf("%s imports %s: %s", rule.packages, path, rule.why)
				}
			}
		})
	}
}

// importers are the only ones that may import a package, or what is below it.
// Tests may import anything.
var importers = []struct {
	imported string
	by       []string
	why      string
}{
	{"topdog/internal/lab", []string{"topdog/cmd/topdog", "topdog/scripts/", "topdog/internal/lab/"}, "the product knows nothing of what tries, measures and shows it"},
	{"topdog/internal/daemon", []string{"topdog/cmd/topdog", "topdog/internal/examine", "topdog/internal/lab/"}, "nothing but a program runs a daemon, or asks for its rules"},
	{"topdog/internal/setup/keepalived", []string{"topdog/internal/setup"}, "it is reached by one call, which a board makes once in its life"},
	{"topdog/internal/lab/judge", nil, "it is for tests: it imports testing"},
	{"topdog/internal/lab/assert", nil, "it is for tests: it imports testing"},
	{"topdog/internal/lab/corescene/scenetest", nil, "it is for tests: it imports testing"},
	{"topdog/internal/lab/golden", []string{"topdog/internal/lab/corescene/scenetest"}, "it is for tests: it has a flag"},
	{"topdog/internal/lab/documented", nil, "it is for tests: it imports testing"},
}

func TestImporters(t *testing.T) {
	all := packages(t)
	for _, rule := range importers {
		within := func(path string) bool { return path == rule.imported || strings.HasPrefix(path, rule.imported+"/") }
		seen := false
		for importer, p := range all {
			for _, path := range p.Imports {
				if within(path) && !hasPrefix(rule.by, importer) {
					t.Errorf("%s imports %s: %s", importer, path, rule.why)
				}
			}
			seen = seen || slices.ContainsFunc(slices.Concat(p.Imports, p.TestImports, p.XTestImports), within)
		}
		if !seen {
			t.Errorf("nobody imports %s: is it spelt like that?", rule.imported)
		}
	}
}

// TestBoardProgram holds that the program for boards has nothing of the lab (scripts/release-build).
func TestBoardProgram(t *testing.T) {
	all, err := list("-deps", "-tags", "board", "topdog/cmd/topdog")
	assert.NoError(t, err)
	for _, p := range all {
		if strings.HasPrefix(p.ImportPath, "topdog/internal/lab/") {
			t.Errorf("it has %s", p.ImportPath)
		}
	}
}

// TestHouse holds that docs/how-it-works.md names every package.
func TestHouse(t *testing.T) {
	_, house, found := strings.Cut(pageOf(t, "how-it-works.md"), "## The house")
	house, _, ends := strings.Cut(house, "\n### ")
	if !found || !ends {
		t.Fatal("the page has no tables of packages")
	}
	for path := range packages(t) {
		if name := strings.TrimPrefix(path, "topdog/"); !strings.Contains(house, "`"+name+"`") {
			t.Errorf("the tables do not name %s", name)
		}
	}
}

// TestPurity holds that the core does not reach for what it must be given, also
// where the standard library would let it.
func TestPurity(t *testing.T) {
	for _, core := range []string{"topdog/election", "topdog/election/clock", "topdog/election/roster", "topdog/election/silence", "topdog/election/lease", "topdog/election/literature"} {
		for _, impure := range []string{"os", "sync", "context", "log", "log/slog", "crypto/rand", "math/rand", "math/rand/v2", "runtime"} {
			if slices.Contains(packages(t)[core].Imports, impure) {
				t.Errorf("%s imports %s", core, impure)
			}
		}
	}
}

// listedPackage is a package as `go list -json` describes it: with all that its imports import, and what its tests import.
type listedPackage struct {
	ImportPath, Dir, Export    string
	GoFiles, Imports, Deps     []string
	TestGoFiles, TestImports   []string
	XTestGoFiles, XTestImports []string
}

// list asks the go command about packages.
func list(args ...string) (packages []*listedPackage, err error) {
	const fields = "-json=ImportPath,Dir,Export,GoFiles,Imports,Deps,TestGoFiles,TestImports,XTestGoFiles,XTestImports"
	out, err := exec.Command("go", append([]string{"list", fields}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %q: %w", args, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		p := new(listedPackage)
		if err := decoder.Decode(p); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// tree has all of topdog's packages. The go command is asked once: it takes as long for all as for one.
var tree = sync.OnceValues(func() (map[string]*listedPackage, error) {
	listed, err := list("topdog/...")
	all := map[string]*listedPackage{}
	for _, p := range listed {
		all[p.ImportPath] = p
	}
	return all, err
})

func packages(t *testing.T) map[string]*listedPackage {
	t.Helper()
	all, err := tree()
	assert.NoError(t, err)
	return all
}

func hasPrefix(prefixes []string, s string) bool {
	for _, p := range prefixes {
		if s == p || strings.HasSuffix(p, "/") && strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
