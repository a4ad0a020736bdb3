package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"topdog/internal/check"
)

// checkKey is the key of the checks, each of which is a table.
const checkKey = "check"

// checkReading is the state of reading one check.
type checkReading struct {
	*reading
	check  check.Check
	at     span            // of the table
	kind   entry           // which says what is checked; its key is "" until it was read
	places map[string]span // of each value that was read
	bad    bool
}

// checkField is a key of a check.
type checkField struct {
	key     string
	example string
	set     func(*checkReading, value) error
}

// checkFields are the keys of a check, in the order of the documentation. First come the kinds.
func checkFields() []checkField {
	return []checkField{
		{check.Unit.String(), `"nginx.service"`, textOf(parseUnit)},
		{check.Exec.String(), `"/usr/sbin/nginx"`, (*checkReading).readExec},
		{check.TCP.String(), `"127.0.0.1:443"`, textOf(parseTCP)},
		{check.HTTP.String(), `{ url = "https://127.0.0.1/", host = "www.example.org" }`, (*checkReading).readHTTP},
		{check.DNS.String(), `"pi.hole @127.0.0.1"`, textOf(parseDNS)},
		{check.Command.String(), `["/usr/local/bin/healthy", "--quick"]`, (*checkReading).readCommand},
		{check.Gateway.String(), "true", (*checkReading).readGateway},
		{"title", `"resolver"`, textOf(func(c *check.Check, text string) error {
			c.Title = text
			return checkPrintable(text, check.MaxTitle, `write at most 32 bytes of printable text, for example title = "resolver"`)
		})},
		{"every", `"1s"`, textOf(func(c *check.Check, text string) (err error) {
			c.Every, err = parseBetween(text, "every", check.MinEvery, check.MaxEvery, check.DefaultEvery)
			return err
		})},
		{"timeout", `"500ms"`, textOf(func(c *check.Check, text string) (err error) {
			c.Timeout, err = parseBetween(text, "timeout", check.MinTimeout, check.MaxEvery, check.DefaultEvery)
			return err
		})},
		{"rise", strconv.Itoa(check.DefaultRise), countOf("rise", check.DefaultRise, func(c *check.Check) *int { return &c.Rise })},
		{"fall", strconv.Itoa(check.DefaultFall), countOf("fall", check.DefaultFall, func(c *check.Check) *int { return &c.Fall })},
		{"when", Quote(check.Leading.String()), textOf(func(c *check.Check, text string) error {
			c.When, _ = check.WhenNamed(text)
			return oneOf(text, check.WhenNames())
		})},
		{"grace", `"30s"`, textOf(func(c *check.Check, text string) (err error) {
			c.Grace, err = parseBetween(text, "grace", 0, check.MaxGrace, check.DefaultGrace)
			return err
		})},
	}
}

// checkFieldNamed returns the field of a key of a check; nil if there is none.
func checkFieldNamed(key string) *checkField {
	all := checkFields()
	i := slices.IndexFunc(all, func(f checkField) bool { return f.key == key })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// noCheck refuses one text as the value of check, which is a list of tables.
func noCheck(string) ([]check.Check, error) {
	return nil, refuse("write [["+checkKey+"]]", "a check is a table")
}

// assignTables takes a list of inline tables.
func (r *reading) assignTables(f *field, v value) {
	tables := v.list
	if v.kind != unstable.Array {
		tables = []value{v}
	}
	for _, element := range tables {
		if element.kind != unstable.InlineTable || v.kind != unstable.Array {
			r.refuse(f, element.at, "this is "+kindInWords(element.kind)+", but it must be a list of tables",
				"write "+f.key+" = "+f.example+", or [["+f.key+"]] and the keys of the check below it")
			return
		}
		r.tables = append(r.tables, table{element.at, element.keys})
	}
}

// checks reads all checks.
func (r *reading) checks() {
	for i, t := range r.tables {
		if i == check.Max {
			r.refuse(r.field(checkKey), t.at, fmt.Sprintf("this is number %d of %d, more than %d", i+1, len(r.tables), check.Max),
				fmt.Sprintf("keep at most %d checks", check.Max))
			return
		}
		r.readCheck(t)
	}
}

// readCheck reads one check.
func (r *reading) readCheck(t table) {
	c := checkReading{reading: r, at: t.at, places: map[string]span{}, check: check.Check{
		Every: check.DefaultEvery, Rise: check.DefaultRise, Fall: check.DefaultFall,
	}}
	for _, e := range t.keys {
		c.read(e)
	}
	if !c.bad {
		c.finish()
	}
	if c.bad {
		r.refused[checkKey] = true
		return
	}
	r.cfg.Checks = append(r.cfg.Checks, c.check)
	r.values[checkKey] = append(r.values[checkKey], t.at)
}

// refuse reports a problem with a key of the check.
func (c *checkReading) refuse(at span, key string, err error) {
	c.bad = true
	because := &refusal{message: err.Error()}
	errors.As(err, &because)
	var inside *misplaced
	if errors.As(err, &inside) {
		at, key = inside.at, key+"."+inside.key
	}
	c.reading.refuse(c.field(checkKey), at, key+": "+because.message, because.hint)
}

// misplaced is a problem with a key inside of a value.
type misplaced struct {
	key string
	at  span
	error
}

func (m *misplaced) Unwrap() error { return m.error }

// read reads one key.
func (c *checkReading) read(e entry) {
	f := checkFieldNamed(e.key)
	if f == nil {
		c.unknown(e)
		return
	}
	if first, twice := c.places[e.key]; twice {
		line, _ := c.position(first.offset)
		c.refuse(e.at, e.key, refuse("delete one of the two", "it is set twice, first on line %d", line))
		return
	}
	c.places[e.key] = e.value.at
	if kind := slices.Index(check.Kinds(), e.key); kind >= 0 {
		if c.kind.key != "" {
			c.refuse(e.at, e.key, refuse("begin another [["+checkKey+"]] for it", "this check has %s already", c.kind.key))
			return
		}
		c.kind, c.check.Kind = e, check.Kind(kind)
	}
	err := f.set(c, e.value)
	var because *refusal
	if errors.As(err, &because) && because.hint == "" {
		because.hint = "write for example " + f.key + " = " + f.example
	}
	if err != nil {
		c.refuse(e.value.at, e.key, err)
	}
}

// unknown reports a key that checks do not have.
func (c *checkReading) unknown(e entry) {
	c.bad = true
	var keys []string
	for _, f := range checkFields() {
		keys = append(keys, f.key)
	}
	hint := "the keys of a check are " + strings.Join(keys, ", ")
	switch near := nearest(normal(e.key), keys); {
	case c.field(e.key) != nil:
		hint = "it is no key of a check: write it above the first [[" + checkKey + "]], since all that follows belongs to the check"
	case near != "":
		hint = "did you mean " + near + "?"
	}
	c.reading.refuse(c.field(checkKey), e.at, "unknown key "+quoted(e.key), hint)
}

// finish fills in what was left out, and holds the values against each other.
func (c *checkReading) finish() {
	k := &c.check
	_, timeout := c.places["timeout"]
	_, grace := c.places["grace"]
	switch {
	case c.kind.key == "":
		c.bad = true
		c.reading.refuse(c.field(checkKey), c.at, "this check does not say what is looked at", "write one of "+strings.Join(check.Kinds(), ", ")+`, for example unit = "nginx.service"`)
	case timeout && k.Timeout > k.Every:
		c.refuse(c.places["timeout"], "timeout", refuse("write at most "+tomlText(k.Every)+", or a longer every",
			"%v is more than every (%v), and one run ends before the next begins", k.Timeout, k.Every))
	case grace && k.When != check.Leading:
		c.refuse(c.places["grace"], "grace", refuse(`write when = "leading" too, or delete this line; start_grace is for the start of a board`,
			"it is counted from when a board begins to lead, and this check is judged on all boards"))
	case k.Title != "" && c.has(func(other check.Check) bool { return other.String() == k.String() }):
		c.refuse(c.places["title"], "title", refuse("write another one", "a check above, of the same kind, is called so"))
	case c.has(func(other check.Check) bool { return other.Title != "" && other.String() == k.String() }):
		c.refuse(c.kind.at, c.kind.key, refuse("write another title there, or one here", "a check above, of the same kind, has this as its title"))
	case c.has(func(other check.Check) bool { other.Title = k.Title; return other.ID() == c.completed().ID() }):
		c.refuse(c.kind.at, c.kind.key, refuse("delete one of the two", "the same check stands above"))
	}
	*k = *c.completed()
	c.checkAim()
}

// has reports whether a check that was read before is so.
func (c *checkReading) has(is func(check.Check) bool) bool {
	return slices.ContainsFunc(c.cfg.Checks, is)
}

// completed returns the check with its defaults that depend on other keys.
func (c *checkReading) completed() *check.Check {
	k := c.check
	if _, set := c.places["timeout"]; !set {
		k.Timeout = k.Every
	}
	if _, set := c.places["grace"]; !set && k.When == check.Leading {
		k.Grace = check.DefaultGrace
	}
	return &k
}

// textOf is for values that are written as a text.
func textOf(parse func(*check.Check, string) error) func(*checkReading, value) error {
	return func(c *checkReading, v value) error {
		if v.kind != unstable.String {
			return refuse("", "this is %s, but it must be text in quotes", kindInWords(v.kind))
		}
		return parse(&c.check, v.text)
	}
}

// countOf is for numbers of results in a row.
func countOf(key string, example int, place func(*check.Check) *int) func(*checkReading, value) error {
	return func(c *checkReading, v value) error {
		n, err := strconv.Atoi(v.text)
		if v.kind != unstable.Integer || err != nil || n < 1 || n > check.MaxCount {
			return refuse(fmt.Sprintf("write for example %s = %d", key, example), "this is not a whole number from 1 to %d", check.MaxCount)
		}
		*place(&c.check) = n
		return nil
	}
}
