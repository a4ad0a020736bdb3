package bench

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"topdog/internal/lab/scene"
)

//go:embed events.scene
var eventsText string

//go:embed parts.scene
var partsText string

// event is something that is done to a group: a scene.
type event struct {
	measures []measure // that of the event itself is the first one, and has its name
	scene    *scene.Scene
	variant  variant
	of       labels // of what is measured, if it is no failover
	options  []string
	reason   string // why some systems do not have it
	added    bool   // it is of a fault, and no form has it
}

// measure is what the scene measures. A run of the event has a line in the output for each.
type measure struct{ key, title string }

func (e *event) String() string { return e.measures[0].key }

// is reports whether the event has an option; see events.scene.
func (e *event) is(option string) bool { return slices.Contains(e.options, option) }

// measured reports whether runs of the event have such a measure.
func (e *event) measured(key string) bool {
	return slices.ContainsFunc(e.measures, func(m measure) bool { return m.key == key })
}

// unable says why a system has no such event, or "".
func (e *event) unable(s *system) string {
	if e.is("topdog-only") && s.program != topdog || e.is("noticing-only") && s.Track == trackProcess {
		return e.reason
	}
	return ""
}

// suits reports whether a system runs the event at all.
func (e *event) suits(s *system) bool { return e.is("served") == s.served() }

// allEvents returns all events in the order in which tables show them.
func allEvents() (all []*event) {
	for _, text := range strings.Split(eventsText, "\nevent")[1:] {
		all = append(all, mustRead(text))
	}
	return all
}

// partNamed is the scene of a part, with words and what they stand for.
func partNamed(name string, words ...string) *event {
	_, text, _ := strings.Cut(partsText, "\npart "+name)
	text, _, _ = strings.Cut(text, "\npart ")
	text, _, _ = strings.Cut(text, "\namid ")
	e := mustRead(strings.NewReplacer(words...).Replace(text))
	e.of = labels{}
	return e
}

// amid is what happens to the groups of the points of a curve.
type amid struct{ key, title, lines string }

var amids = func() (all []amid) {
	for _, text := range strings.Split(partsText, "\namid ")[1:] {
		head, lines, _ := strings.Cut(text, "\n")
		key, quoted, _ := strings.Cut(head, " ")
		all = append(all, amid{key, strings.Trim(quoted, `"`), lines})
	}
	return all
}()

// faultEvents are those of the faults of scenes that no event has: each hits the leader or the LAN, for three seconds. A form
// has them only if it is told to, so that its tables stay the same.
func faultEvents() (all []*event) {
	for _, f := range scene.Faults {
		if f.Lasts.Most == 0 || slices.ContainsFunc(allEvents(), func(e *event) bool { return e.measured(f.Name) }) {
			continue
		}
		begin, end := map[scene.Form]string{
			scene.OfBoards: "leader " + f.Name, scene.OfLAN: f.Name, scene.OfShare: f.Name + " 20%",
			scene.OfGroups: f.Name + " leader", scene.OfTwoGroups: f.Name + " leader / others",
		}[f.Of], ""
		title := f.Title
		if f.End != "" {
			title += ", for 3 s"
			end = "wait 3s\n" + strings.TrimSuffix(begin, f.Name) + f.End + "\n"
			if f.Of != scene.OfBoards {
				end = "wait 3s\n" + f.End + "\n"
			}
		}
		text := fmt.Sprintf(" probed teaches seldom\nmeasure %s %q\n%s\n%ssettle 2s 4H\nawait one\n", f.Name, title, begin, end)
		e := mustRead(text)
		e.added = true
		all = append(all, e)
	}
	return all
}

// measures are those of all events, in the order in which tables show them.
var measures = sync.OnceValue(func() (all []measure) {
	for _, e := range slices.Concat(allEvents(), faultEvents()) {
		all = append(all, e.measures...)
	}
	return all
})

// mustRead reads an event of which a mistake is one in this program.
func mustRead(text string) *event {
	e, err := readEvent(text)
	if err != nil {
		panic(fmt.Sprintf("event %v: %v", text, err))
	}
	return e
}

// readEvent reads what follows the word event.
func readEvent(text string) (*event, error) {
	head, scenes, _ := strings.Cut(text, "\n")
	options, reason, _ := strings.Cut(head, `"`)
	e := &event{options: strings.Fields(options), reason: strings.TrimSuffix(reason, `"`)}
	e.variant = variant{boards: 3, Preempt: e.is("preempt"), Hooked: e.is("hooked"), pages: e.is("pages"), Five: e.is("five")}
	if e.is("five-boards") {
		e.variant.boards = 5
	}
	for line := range strings.Lines(scenes) {
		_, line, found := strings.Cut(line, "measure ")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		key, quoted, _ := strings.Cut(strings.TrimSpace(line), " ")
		title, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("%s has no title: %w", key, err)
		}
		e.measures = append(e.measures, measure{key, title})
	}
	if len(e.measures) == 0 {
		return nil, fmt.Errorf("%q measures nothing", text)
	}
	var err error
	e.scene, err = scene.Parse(e.String(), scenes)
	return e, err
}
