package attack

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"topdog/internal/lab/scene"
)

//go:embed attacks.scene
var attacksText string

// attack is a scene, and one row of the table.
type attack struct {
	Key   string `json:"key"`
	Title string `json:"title"`

	options []string
	text    string // of the scene
}

func (a attack) String() string { return a.Key }

// attacks returns all, in the order of the table.
func attacks() (all []attack) {
	for _, text := range strings.Split(attacksText, "\nattack ")[1:] {
		head, text, _ := strings.Cut(text, "\n")
		key, rest, _ := strings.Cut(head, ` "`)
		title, options, _ := strings.Cut(rest, `"`)
		all = append(all, attack{Key: key, Title: title, options: strings.Fields(options), text: text})
	}
	return all
}

// is reports whether the attack has an option; see attacks.scene.
func (a attack) is(option string) bool { return slices.Contains(a.options, option) }

// suits reports whether a system in a place is attacked so.
func (a attack) suits(s system, p place) bool {
	switch {
	case a.is("topdog") && !s.topdog(), a.is("newest") && s.Name != "topdog", a.is("whole-core") && p.Share > 0:
		return false
	}
	return !slices.ContainsFunc([]string{"keepalived", "ucarp"}, func(rival string) bool { return a.is(rival) && s.Name != rival })
}

// scene is what is done, with so many failures.
func (a attack) scene(runs int) (*scene.Scene, error) {
	return scene.Parse(fmt.Sprintf("attacks.scene, %s", a.Key), strings.ReplaceAll(a.text, "RUNS", strconv.Itoa(runs)))
}
