package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/documented"
)

// uncommented is the reference with every key in force.
func uncommented() string {
	return regexp.MustCompile(`(?m)^##?([a-z_]+ = )`).ReplaceAllString(string(Reference()), "$1")
}

// boardDependent are the keys that have no fixed default.
var boardDependent = map[string]bool{"address": true, "interface": true, "name": true}

func TestReferenceIsTheDefaults(t *testing.T) {
	plain := parse(t, string(Reference()))
	want := parse(t, good)
	assert.Equal(t, []string(nil), want.Changed(plain), "what the reference changes as it is")
	for _, key := range want.Changed(parse(t, uncommented())) {
		if !boardDependent[key] {
			t.Errorf("the reference shows for %s what is not the default", key)
		}
	}
}

func TestReferenceHasEveryKey(t *testing.T) {
	assert.Equal(t, keys(), documented.ConfigKeys(Reference()), "keys of the reference, in order")
}

// The introduction of the reference names the keys that all boards must agree on.
func TestReferenceNamesTheSharedKeys(t *testing.T) {
	var shared []string
	for _, key := range keys() {
		if Shared(key) {
			shared = append(shared, key)
		}
	}
	want := "must agree on " + strings.Join(shared, ", ") + " and the key."
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(Reference()), "\n#", " ")), " ")
	if !strings.Contains(text, want) {
		t.Errorf("the reference does not say: %s", want)
	}
	assert.Is(t, false, Shared("no such key"), "an unknown key is shared")
}

const docsPath = "../../docs/config.md"

// The manual has a row for each key, in order, with the default and with
// whether a reload applies it, and a section that explains it.
func TestManualIsInStep(t *testing.T) {
	manual, err := os.ReadFile(docsPath)
	assert.NoError(t, err)
	reference := parse(t, uncommented())
	var want, got []string
	for _, k := range settings(reference) {
		value := "—"
		switch {
		case k.name == "address":
			value = "required"
		case !reference.Sets(k.name):
			value = "`[]`" // an empty list
		case !boardDependent[k.name]:
			value = "`" + reference.Value(k.name) + "`"
		}
		reload := ""
		if k.live {
			reload = "yes"
		}
		want = append(want, fmt.Sprintf("%s | %s | %s", k.name, value, reload))
		if !strings.Contains(string(manual), "\n### "+k.name+"\n") {
			t.Errorf("the manual has no section for %s", k.name)
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| \\[`([a-z_]+)`\\]\\(#[a-z_]+\\) \\| ([^|]*) \\| [^|]* \\|([^|]*)\\|$").FindAllStringSubmatch(string(manual), -1) {
		got = append(got, fmt.Sprintf("%s | %s | %s", match[1], match[2], strings.TrimSpace(match[3])))
	}
	assert.Equal(t, want, got, "the table of %s: key, default, applied on reload", docsPath)
}

// Every example in the manual is a file that topdog accepts.
func TestExamplesOfTheManual(t *testing.T) {
	manual, err := os.ReadFile(docsPath)
	assert.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(manual), -1)
	if len(blocks) < 4 {
		t.Fatalf("only %d examples found", len(blocks))
	}
	for _, block := range blocks {
		parseGroups(t, block[1])
	}
}

// The error that the manual shows is the one that topdog prints.
func TestErrorInTheManual(t *testing.T) {
	manual, err := os.ReadFile(docsPath)
	assert.NoError(t, err)
	_, err = ParseGroups("/etc/topdog/topdog.toml", []byte("address = 192.168.1.250\n"))
	if err == nil || !strings.Contains(string(manual), "\n"+err.Error()+"\n") {
		t.Errorf("the manual does not show this error:\n%s", err)
	}
}

// TestReadmeConfiguration holds that what the README shows is accepted.
func TestReadmeConfiguration(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	assert.NoError(t, err)
	_, shown, begins := strings.Cut(string(readme), "```toml\n")
	shown, _, ends := strings.Cut(shown, "```\n")
	if !begins || !ends {
		t.Fatal("README.md shows no configuration")
	}
	assert.Is(t, 1, len(parse(t, shown).Checks), "checks in the configuration that README.md shows")
}
