package webpage

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// pages are the files of each page of topdog, besides those that it shares with others.
var pages = map[string]struct {
	directory string
	shared    []string // directories
}{
	"board":     {"../../page/assets", []string{"../../web/shared"}},
	"demo":      {"../demopage/assets", []string{"../../web/shared", "assets"}},
	"simulator": {"../simpage/assets", []string{"../../web/shared", "assets"}},
}

// maxBytes bounds what a browser loads of one page besides the files that several share.
const maxBytes = 64_000

var (
	idPattern      = regexp.MustCompile(` id="([^"]+)"`)
	atPattern      = regexp.MustCompile(`\bat\('([^']+)'\)`)
	importPattern  = regexp.MustCompile(`import \{([^}]+)\} from '/([a-z]+\.js)'`)
	exportPattern  = regexp.MustCompile(`export (?:async )?(?:function|const|class) (\w+)`)
	allowedPattern = regexp.MustCompile(`'?http://www\.w3\.org/2000/svg'?`)
)

// forbidden are what the Content Security Policy does not let a page do, or what makes elements of text, by the kind of file.
var forbidden = map[string][]string{
	".js":   {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"},
	".html": {" style=", "<style", " onclick", "http:", "https:"},
	".css":  {"http:", "https:", "@import"},
}

// read returns the texts of the files of some directories.
func read(t *testing.T, directories ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, directory := range directories {
		files, err := os.ReadDir(directory)
		assert.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(directory, f.Name()))
			assert.NoError(t, err)
			all[f.Name()] = string(text)
		}
	}
	return all
}

// TestAssets holds what a browser would only tell somebody who looks at its console: that scripts find their elements and each
// other, and that nothing is in the files which the Content Security Policy forbids.
func TestAssets(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			own, bytes := read(t, page.directory), 0
			for _, text := range own {
				bytes += len(text)
			}
			if bytes > maxBytes {
				t.Errorf("the page has %d bytes, more than %d", bytes, maxBytes)
			}
			checkPage(t, read(t, append(page.shared, page.directory)...))
		})
	}
}

func checkPage(t *testing.T, all map[string]string) {
	t.Helper()
	ids := map[string]bool{}
	for _, found := range idPattern.FindAllStringSubmatch(all["index.html"], -1) {
		if ids[found[1]] {
			t.Errorf("two elements have the id %q", found[1])
		}
		ids[found[1]] = true
	}
	for name, text := range all {
		for _, bad := range forbidden[filepath.Ext(name)] {
			if strings.Contains(allowedPattern.ReplaceAllString(text, ""), bad) {
				t.Errorf("%s has %q", name, bad)
			}
		}
		if filepath.Ext(name) != ".js" {
			continue
		}
		for _, found := range atPattern.FindAllStringSubmatch(text, -1) {
			if !ids[found[1]] {
				t.Errorf("%s looks for the id %q, which no element has", name, found[1])
			}
		}
		for _, found := range importPattern.FindAllStringSubmatch(text, -1) {
			exported := map[string]bool{}
			for _, e := range exportPattern.FindAllStringSubmatch(all[found[2]], -1) {
				exported[e[1]] = true
			}
			for imported := range strings.SplitSeq(found[1], ",") {
				if name := strings.Fields(imported); len(name) > 0 && !exported[name[0]] {
					t.Errorf("%s does not export %s", found[2], name[0])
				}
			}
		}
	}
}
