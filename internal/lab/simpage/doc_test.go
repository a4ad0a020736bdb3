package simpage

import (
	"maps"
	"slices"
	"testing"

	"topdog/internal/lab/documented"
)

// TestEveryNameOfTheJSONIsDocumented holds that each table of docs/simulator.md has the names that
// programs can rely on, and none that does not exist.
func TestEveryNameOfTheJSONIsDocumented(t *testing.T) {
	documented.Compare(t, "../../../docs/simulator.md", "In the browser", map[string][]string{
		"Run":               documented.Keys[run](),
		"Choice":            documented.Keys[choice](),
		"Kinds of failures": failureNames(),
		"Lane":              documented.Keys[lane](),
		"State of a board":  documented.Keys[state](),
		"Step of a run":     documented.Keys[step](),
		"Kinds of steps":    append(slices.Collect(maps.Values(stepKinds)), kindLook),
		"Copies":            documented.Keys[copies](),
		"Fates":             slices.Collect(maps.Values(fates)),
		"End":               documented.Keys[end](),
		"Figure":            documented.Keys[figure](),
		"Comparison":        documented.Keys[comparison](),
	})
}
