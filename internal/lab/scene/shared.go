package scene

import (
	"embed"
	"strings"
)

//go:embed testdata/*.scene
var texts embed.FS

// Names are the names of the scenes that every stage can play.
func Names() (names []string) {
	entries, err := texts.ReadDir("testdata")
	if err != nil {
		panic(err) // they are in this program
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".scene"))
	}
	return names
}

// Named returns one of these scenes.
func Named(name string) (*Scene, error) {
	text, err := texts.ReadFile("testdata/" + name + ".scene")
	if err != nil {
		return nil, err
	}
	return Parse(name+".scene", string(text))
}
