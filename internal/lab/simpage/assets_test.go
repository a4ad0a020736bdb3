package simpage

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// maxBytes bounds what a browser loads, besides the files that all pages share.
const maxBytes = 64_000

// TestAssets holds what a browser would only tell somebody who looks at its console: that scripts find
// their elements, and that nothing is in the files which the Content Security Policy forbids.
func TestAssets(t *testing.T) {
	entries, err := fs.ReadDir(assets, "assets")
	assert.NoError(t, err)
	all, bytes := map[string]string{}, 0
	for _, e := range entries {
		content, err := fs.ReadFile(assets, path.Join("assets", e.Name()))
		assert.NoError(t, err)
		all[e.Name()] = string(content)
		bytes += len(content)
	}
	if bytes > maxBytes {
		t.Errorf("the page has %d bytes, more than %d", bytes, maxBytes)
	}
	ids := map[string]bool{}
	for _, found := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(all["index.html"], -1) {
		if ids[found[1]] {
			t.Errorf("two elements have the id %q", found[1])
		}
		ids[found[1]] = true
	}
	imported := regexp.MustCompile(`from '/([a-z]+\.js)'`)
	for name, text := range all {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, found := range regexp.MustCompile(`\bat\('([^']+)'\)`).FindAllStringSubmatch(text, -1) {
			if !ids[found[1]] {
				t.Errorf("%s looks for the id %q, which no element has", name, found[1])
			}
		}
		for _, found := range imported.FindAllStringSubmatch(text, -1) {
			if found[1] != "topdog.js" && all[found[1]] == "" {
				t.Errorf("%s imports %s, which does not exist", name, found[1])
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"} {
			if text := strings.ReplaceAll(text, "'http://www.w3.org/2000/svg'", ""); strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
	for _, bad := range []string{" style=", "<style", " onclick", "http:", "https:"} {
		if text := strings.ReplaceAll(all["index.html"], "http://www.w3.org/2000/svg", ""); strings.Contains(text, bad) {
			t.Errorf("index.html has %q", bad)
		}
	}
}
