package config

import (
	_ "embed"
	"slices"
)

//go:embed reference.toml
var reference []byte

// Reference returns the annotated configuration that documents every key with
// its default. It is itself a valid file, as it is and with every "#key = value"
// line taken out of its comment.
func Reference() []byte { return slices.Clone(reference) }
