package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

const (
	docs      = "../../../docs"
	page      = docs + "/monitoring.md"
	rules     = docs + "/monitoring/topdog.rules.yml"
	dashboard = docs + "/grafana.json"
)

// ruleTests are the files with tests of the rules.
var ruleTests = []string{docs + "/monitoring/topdog.rules.test.yml", docs + "/monitoring/topdog.rules.hours.test.yml"}

// read returns what files say.
func read(t testing.TB, paths ...string) (all string) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		assert.NoError(t, err)
		all += string(text)
	}
	return all
}

// column returns what a regular expression has in its first parentheses, of all matches.
func column(expression, text string) (all []string) {
	for _, found := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

// labels are those of each metric, by the table of the page. A test of package page holds that this is what is exposed.
func labels(t testing.TB) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(topdog_[a-z_]+)` \\| [a-z]+ \\| ([^|]*) \\|").FindAllStringSubmatch(read(t, page), -1) {
		found[row[1]] = column("`([a-z]+)`", row[2])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no table of metrics", page)
	}
	return found
}

var (
	selector = regexp.MustCompile(`\b(topdog_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"([^"]*)"`)
)

// unknown says what an expression selects that does not exist: metrics, their labels, and values of those labels that
// are identifiers.
func unknown(expression string, metrics map[string][]string, identifiers string) (all []string) {
	if !strings.Contains(expression, "topdog_") && !strings.Contains(expression, "up{") {
		all = append(all, "no metric")
	}
	for _, found := range selector.FindAllStringSubmatch(expression, -1) {
		known, exists := metrics[found[1]]
		if !exists {
			all = append(all, found[1])
		}
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			label, values := m[1], m[2]
			if label == "job" || label == "instance" {
				continue // Prometheus adds them
			}
			if !slices.Contains(known, label) {
				all = append(all, found[1]+"{"+label+"}")
			}
			for value := range strings.SplitSeq(values, "|") {
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(value) + `\b`).MatchString(identifiers) {
					all = append(all, fmt.Sprintf("%s{%s=%q}", found[1], label, value))
				}
			}
		}
	}
	return all
}

// identifiers is the text that has those of all labels.
func identifiers(t testing.TB) string {
	t.Helper()
	return read(t, docs+"/status.md") + read(t, page)
}

// A mistake in a name makes an expression that is never true, and nobody notices.
func TestNames(t *testing.T) {
	metrics, values := labels(t), identifiers(t)
	expressions := rulesOf(t)
	for i, e := range queries(t) {
		expressions[fmt.Sprintf("%s %d", dashboard, i)] = e.Expr
	}
	for i, series := range column(`series: '([^']*)'`, read(t, ruleTests...)) {
		if strings.HasPrefix(series, "topdog_") {
			expressions[fmt.Sprintf("series %d of the tests", i)] = regexp.MustCompile(`(board|name|version|check|when)="[^"]*",?`).ReplaceAllString(series, "")
		}
	}
	for where, expression := range expressions {
		for _, name := range unknown(expression, metrics, values) {
			t.Errorf("%s: there is no %s:\n%s", where, name, expression)
		}
	}
}

// TestUnknown holds that a mistake is found.
func TestUnknown(t *testing.T) {
	metrics := map[string][]string{"topdog_role": {"role"}}
	for expression, want := range map[string][]string{
		`topdog_role{role="leader",job="x"} == 1`: nil,
		`topdog_rule{role="leader"}`:              {"topdog_rule", "topdog_rule{role}"},
		`topdog_role{rule="leader"}`:              {"topdog_role{rule}"},
		`topdog_role{role=~"leader|lieder"}`:      {`topdog_role{role="lieder"}`},
		`vector(1)`:                               {"no metric"},
	} {
		assert.Equal(t, want, unknown(expression, metrics, "| `leader` |"), "%s", expression)
	}
}

// rulesOf are the expressions of the alerts, by their names.
func rulesOf(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	text := read(t, rules)
	blocks := strings.Split(text, "      - alert: ")[1:]
	for _, block := range blocks {
		name, rest, _ := strings.Cut(block, "\n")
		_, expression, hasExpression := strings.Cut(rest, "        expr: ")
		expression, _, ends := strings.Cut(expression, "        labels: ")
		if !hasExpression || !ends {
			t.Fatalf("%s: %s has no expr and labels", rules, name)
		}
		expression, _, _ = strings.Cut(expression, "        for: ")
		found[name] = expression
	}
	return found
}

// Every alert is on the page with its severity, and in the tests. It has a text that says what to do, and a link to the page
// that has more.
func TestAlertsAreDocumented(t *testing.T) {
	text := read(t, rules)
	var want []string
	for _, block := range strings.Split(text, "      - alert: ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		severity := column(`severity: ([a-z]+)`, rest)
		if len(severity) != 1 || !strings.Contains(rest, "summary: ") || !strings.Contains(rest, "description: ") {
			t.Errorf("%s: %s lacks severity, summary or description", rules, name)
			continue
		}
		want = append(want, "| `"+name+"` | "+severity[0]+" |")
		links := column(`docs: docs/(\S+)`, rest)
		if len(links) != 1 {
			t.Errorf("%s: %s has %d links", rules, name, len(links))
			continue
		}
		follow(t, name, links[0])
		filled(t, name, rest)
	}
	got := column("(?m)^(\\| `Topdog[A-Za-z]+` \\| [a-z]+ \\|)", read(t, page))
	assert.Equal(t, want, got, "what exists, and docs/monitoring.md")
	tested := column(`alertname="([A-Za-z]+)"`, read(t, ruleTests...))
	slices.Sort(tested)
	assert.Equal(t, slices.Sorted(maps.Keys(rulesOf(t))), slices.Compact(tested), "what exists, and %v", ruleTests)
}

// filled holds that the texts of an alert name labels that it has: its tests say which.
func filled(t testing.TB, name, texts string) {
	t.Helper()
	samples := column(`ALERTS\{alertname="`+name+`",([^}]*)\}`, read(t, ruleTests...))
	for _, label := range column(`\$labels\.([a-z_]+)`, texts) {
		for _, sample := range samples {
			if !strings.Contains(sample, label+"=") {
				t.Errorf("%s: %s has no label %s, and a text with it: %s", rules, name, label, sample)
			}
		}
	}
}

// follow follows a link to a heading.
func follow(t testing.TB, from, link string) {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	for _, heading := range column(`(?m)^#+ (.*)$`, read(t, filepath.Join(docs, path))) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
		if strings.ReplaceAll(plain, " ", "-") == anchor {
			return
		}
	}
	t.Errorf("%s: there is no heading %q in docs/%s", from, anchor, path)
}

// panel is what Grafana shows in one place.
type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []query
}

// query is what it asks Prometheus.
type query struct{ RefID, Expr string }

// board reads the dashboard.
func board(t testing.TB) (d struct {
	Title         string
	SchemaVersion int
	Panels        []panel
	Annotations   struct{ List []query }
}) {
	t.Helper()
	assert.NoError(t, json.Unmarshal([]byte(read(t, dashboard)), &d))
	return d
}

// queries are all that the dashboard asks.
func queries(t testing.TB) (all []query) {
	t.Helper()
	d := board(t)
	for _, p := range d.Panels {
		all = append(all, p.Targets...)
	}
	return append(all, d.Annotations.List...)
}

// unseen is what Prometheus does not see in most steps of a graph: a change within a step, which has one scrape if the graph
// shows little time; and what is true for a fixed time, which is between two steps if it shows much.
func unseen(expression string) string {
	return regexp.MustCompile(`\[\$__interval\]|_age_seconds(\{[^}]*\})? < \d+(\)|$)`).FindString(expression)
}

// TestUnseen holds that such expressions are found.
func TestUnseen(t *testing.T) {
	for expression, want := range map[string]string{
		`changes(a{job="$job"}[$__interval]) > 0`:                `[$__interval]`,
		`changes(a{job="$job"}[$__rate_interval]) > 0`:           "",
		`(a and b_age_seconds{job="$job"} < 60) * c`:             `_age_seconds{job="$job"} < 60)`,
		`(a and b_age_seconds < 60 + $__interval_ms / 1000) * c`: "",
	} {
		assert.Is(t, want, unseen(expression), "%s", expression)
	}
}

// TestDashboard holds what Grafana silently makes the best of.
func TestDashboard(t *testing.T) {
	d := board(t)
	if d.SchemaVersion < 36 || len(d.Panels) == 0 { // 36: a data source is an object
		t.Fatalf("schema %d, %d panels", d.SchemaVersion, len(d.Panels))
	}
	for _, q := range queries(t) {
		assert.Is(t, "", unseen(q.Expr), "%s misses what happens between two steps", q.Expr)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d (%s): the id is there twice, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Datasource.UID != "${datasource}" || len(p.Targets) == 0) {
			t.Errorf("%s: it asks nothing, or always the same Prometheus", p.Title)
		}
		for _, q := range p.Targets {
			if !strings.Contains(q.Expr, `{job="$job"`) {
				t.Errorf("%s asks for all groups: %s", p.Title, q.Expr)
			}
		}
		g := p.GridPos
		if g.X+g.W > 24 || g.W == 0 || g.H == 0 {
			t.Errorf("%s is not within the 24 columns, or empty", p.Title)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s and %s are in one place", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
