package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"topdog/election"
	"topdog/election/silence"
	"topdog/gpio"
	"topdog/internal/check"
	"topdog/internal/console"
	"topdog/internal/health"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/documented"
	"topdog/internal/page"
	"topdog/netio"
	"topdog/wire"
)

// Whoever writes a script against the JSON finds every key and every identifier
// in docs/status.md, and none there that does not exist.
func TestEveryNameOfTheJSONIsDocumented(t *testing.T) {
	names := consoleConstants(t)
	documented.Compare(t, statusDoc, "", map[string][]string{
		"Status":        documented.Keys[console.Status](),
		"Board":         documented.Keys[console.Board](),
		"Second path":   documented.Keys[console.SecondPath](),
		"Witness":       documented.Keys[console.Witness](),
		"Voter":         documented.Keys[console.Voter](),
		"Detector":      documented.Keys[console.Detector](),
		"Patience":      documented.Keys[console.Patience](),
		"Watch":         documented.Keys[console.Watch](),
		"Change":        documented.Keys[console.Change](),
		"Check":         documented.Keys[console.Check](),
		"Counters":      documented.Keys[console.Counters](),
		"Defence":       documented.Keys[console.Defence](),
		"Problem":       documented.Keys[console.Problem](),
		"Trace":         documented.Keys[console.Trace](),
		"Traced change": documented.Keys[console.TracedChange](),
		"Step":          documented.Keys[console.TraceStep](),
		"Handover":      documented.Keys[console.Handover](),
		"Done":          documented.Keys[console.Done](),
		"Group keys":    documented.Keys[console.Keys](),
		"Board's keys":  documented.Keys[console.BoardKeys](),
		"Tried check":   documented.Keys[console.TriedCheck](),
		"Report":        documented.Keys[console.Report](),
		"Section":       documented.Keys[console.Section](),
		"Finding":       documented.Keys[console.Finding](),
		"Transition":    documented.Keys[console.Transition](),
		"History":       documented.Keys[page.History](),
		"Slot":          documented.Keys[page.HistorySlot](),
		"Seen change":   documented.Keys[page.HistoryChange](),
		"Failure":       {"error", "hint"},

		"Roles":                    names["Role"],
		"Events":                   names["Event"],
		"Reasons":                  slices.Sorted(maps.Keys(reasons())),
		"Reasons to drop a packet": append(dropReasons(), console.SocketDrops...),
		"Lines of defence":         names["Defence"],
		"Kinds of problems":        append(names["Problem"], problemsElsewhere()...),
		"Patterns of the light":    patterns(),
		"Lessons":                  enumerated(silence.LessonNone, silence.LessonAnnounced),
		"States of the watch":      append(enumerated(election.WatchOff, election.WatchRuns), slices.DeleteFunc(enumerated(netio.WatchNoAnswer, netio.WatchLossy), func(s string) bool { return s == netio.WatchAnswers.String() })...),
		"States of a second path":  names["SecondPath"],
		"Grades":                   enumerated(wire.GradePassing, wire.MaxGrade),
		"Kinds of checks":          check.Kinds(),
		"States":                   names["State"],
		"Sections":                 names["Section"],
		"Topics":                   names["Topic"],
		"States of checks":         enumerated(health.Starting, health.NotJudged),
		"Steps":                    names["Step"],
	})
}

const statusDoc = "../../../docs/status.md"

// A reason has the same text in the log and in the manual.
func TestEveryReasonIsDocumented(t *testing.T) {
	doc := readDoc(t, "status.md")
	for identifier, text := range reasons() {
		if !strings.Contains(doc, "| `"+identifier+"` | "+text+" | ") {
			t.Errorf("docs/status.md does not explain the reason %q", text)
		}
	}
}

// enumerated are the names of the values of an enumeration.
func enumerated[T interface {
	~uint8
	String() string
}](first, last T) (names []string) {
	for v := first; v <= last; v++ {
		names = append(names, v.String())
	}
	return names
}

// The console knows no wire, and hooks ask it for this grade.
func TestFailingIsFailing(t *testing.T) {
	assert.Is(t, wire.GradeFailing.String(), console.GradeFailing, "what package console calls it, and package wire")
}

// snake is how an identifier looks: most languages can use it as a name.
var snake = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func TestIdentifiersAreIdentifiers(t *testing.T) {
	for section, names := range documented.Tables(t, statusDoc, "") {
		seen := map[string]bool{}
		for _, name := range names {
			if !snake.MatchString(name) || seen[name] {
				t.Errorf("%s: %q is no identifier, or stands twice", section, name)
			}
			seen[name] = true
		}
	}
}

// reasons returns the texts of all reasons by their identifiers.
func reasons() map[string]string {
	found := map[string]string{}
	for r := election.ReasonNone; r.Identifier() != election.Reason(255).Identifier(); r++ {
		found[r.Identifier()] = r.String()
	}
	return found
}

func dropReasons() (names []string) {
	for r := wire.Accepted + 1; int(r) < wire.DropReasons; r++ {
		names = append(names, r.Identifier())
	}
	return names
}

// problemsElsewhere are the kinds of problems that are named by their cause.
func problemsElsewhere() []string {
	names := []string{
		wire.BadTag.Identifier(), wire.Unauthenticated.Identifier(),
		wire.NotExpectingAuth.Identifier(), wire.BadVersion.Identifier(),
	}
	for k := election.NoticeKind(1); k.Identifier() != election.NoticeKind(0).Identifier(); k++ {
		names = append(names, k.Identifier())
	}
	return names
}

func patterns() (names []string) {
	for _, p := range []gpio.Pattern{gpio.Off, gpio.Follower, gpio.Election, gpio.Leader, gpio.Fault} {
		names = append(names, p.String())
	}
	return names
}

// consoleConstants finds the constants of package console that are named after what
// they identify, such as Role… and Problem…, and returns their values.
func consoleConstants(t *testing.T) map[string][]string {
	t.Helper()
	kind := regexp.MustCompile(`^(Role|Step|Problem|Defence|Event|State|Section|Topic|SecondPath)[A-Z]`)
	found := map[string][]string{}
	for _, file := range []string{"status.go", "trace.go", "event.go", "report.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "../../../internal/console/"+file, nil, 0)
		assert.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name := kind.FindStringSubmatch(spec.Names[0].Name)
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if name == nil || !ok {
				return true
			}
			value, err := strconv.Unquote(literal.Value)
			assert.NoError(t, err)
			found[name[1]] = append(found[name[1]], value)
			return true
		})
	}
	return found
}
