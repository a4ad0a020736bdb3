package page

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// metricsType is the Content-Type of what exposition writes.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// exposition writes metrics as Prometheus reads them, in its text format 0.0.4.
type exposition struct {
	text []byte
	metric
}

// add adds a series, with a value for each label of its metric. All series of a metric must be
// added one after the other.
func (e *exposition) add(name string, value float64, labels ...string) {
	if e.name != name {
		e.begin(name)
	}
	e.text = append(e.text, name...)
	separator := byte('{')
	for i, label := range e.labels {
		e.text = append(e.text, separator)
		e.text = append(e.text, label...)
		e.text = append(e.text, `="`...)
		e.text = append(e.text, labelEscapes.Replace(printable(labels[i]))...)
		e.text = append(e.text, '"')
		separator = ','
	}
	if len(e.labels) > 0 {
		e.text = append(e.text, '}')
	}
	e.text = append(e.text, ' ')
	e.text = strconv.AppendFloat(e.text, value, 'f', -1, 64)
	e.text = append(e.text, '\n')
}

// begin writes what stands above the series of a metric.
func (e *exposition) begin(name string) {
	e.metric = metrics[slices.IndexFunc(metrics, func(m metric) bool { return m.name == name })]
	e.text = append(e.text, "# HELP "+name+" "+helpEscapes.Replace(e.help)+"\n# TYPE "+name+" "+string(e.kind)+"\n"...)
}

// one adds a series that is 1 or 0.
func (e *exposition) one(name string, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	e.add(name, value, labels...)
}

// oneOf adds a series for each value that the last label can have: 1 for the one that it has, and
// 0 for the others. A value that is not among them has a series too: the daemon may be newer.
func (e *exposition) oneOf(name, value string, all []string, labels ...string) {
	if value != "" && !slices.Contains(all, value) {
		all = append(slices.Clone(all), value)
	}
	for _, v := range all {
		e.one(name, v == value, append(slices.Clone(labels), v)...)
	}
}

// counts adds a series for each value that the label can have, and for those that are counted all
// the same. Those that are 0 are there as well, or Prometheus would not see the first event of a kind.
func (e *exposition) counts(name string, counted map[string]uint64, all []string) {
	for value := range counted {
		if !slices.Contains(all, value) {
			all = append(slices.Clone(all), value)
		}
	}
	for _, value := range slices.Sorted(slices.Values(all)) {
		e.add(name, float64(counted[value]), value)
	}
}

var (
	labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// printable replaces what Prometheus does not take, or people would not see: bytes that are not UTF-8, and
// characters that steer a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
