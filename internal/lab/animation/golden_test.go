package animation

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// readme is the directory of the recording and its pictures.
const readme = "../../../" + dir

// sizeMost keeps the first screen of the README light.
const sizeMost = 60_000

// TestPictures holds that the pictures are what is drawn from the recording, byte for byte. To draw them
// anew: go test ./internal/lab/animation -update; then look at them.
func TestPictures(t *testing.T) {
	files, err := draw(readme)
	assert.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(readme, name)
		if *golden.Update {
			assert.NoError(t, os.WriteFile(path, files[name], 0o644))
		}
		committed, err := os.ReadFile(path)
		assert.NoError(t, err)
		if !bytes.Equal(committed, files[name]) {
			t.Errorf("%s is not what is drawn from the recording: go test ./internal/lab/animation -update, and look at it", path)
		}
		if len(files[name]) > sizeMost {
			t.Errorf("%s has %d bytes, more than %d", path, len(files[name]), sizeMost)
		}
	}
}

// TestNothingFromElsewhere holds that the pictures are XML, run no script, and refer to nothing
// but themselves.
func TestNothingFromElsewhere(t *testing.T) {
	files, err := draw(readme)
	assert.NoError(t, err)
	for name, content := range files {
		d := xml.NewDecoder(bytes.NewReader(content))
		elements := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			elements++
			for _, a := range e.Attr {
				if e.Name.Local == "script" || strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("%s: <%s %s=%q>", name, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
		if elements < 50 || bytes.Contains(content, []byte("url(")) || bytes.Contains(content, []byte("@import")) {
			t.Errorf("%s has %d elements, or refers to something", name, elements)
		}
	}
}

// TestRecordingSaysWhatItIs holds that the recording names its command and its machine, that the
// machine was quiet, and that it ends as it began.
func TestRecordingSaysWhatItIs(t *testing.T) {
	r, err := read(readme)
	assert.NoError(t, err)
	if !strings.HasPrefix(r.Command, "go run ./scripts/animation -record ") || r.MachineText == "" || r.GroundText == "" {
		t.Errorf("the recording is of %q on %q (%q)", r.Command, r.MachineText, r.GroundText)
	}
	assert.ErrorIs(t, disturbed(r), nil, "")
	if len(r.Runs) != runs || !slices.IsSorted(r.Runs) || r.Runs[runs/2] != silence(r) {
		t.Errorf("the recording with %v is not the middle one of %v", silence(r), r.Runs)
	}
	list := newTimeline(r).outages
	if len(list) != 3 || list[0].Before != list[2].After {
		t.Errorf("the outages are %+v, want three, the last of which brings the first leader back", list)
	}
}

// TestStill holds that nothing moves for whoever prefers that, that there is something to be seen
// then, and that each animation has the length of the picture.
func TestStill(t *testing.T) {
	files, err := draw(readme)
	assert.NoError(t, err)
	for name, content := range files {
		style, _, _ := bytes.Cut(content, []byte("</style>"))
		still, moving, found := bytes.Cut(style, []byte("@media(prefers-reduced-motion:no-preference){"))
		if !found || bytes.Contains(still, []byte("animation-name")) || bytes.Contains(still, []byte("animation:")) {
			t.Errorf("%s moves for everybody", name)
		}
		if !bytes.Contains(still, []byte("{opacity:1}@")) || !bytes.Contains(still, []byte("{opacity:0}@")) {
			t.Errorf("%s shows everything or nothing where it stands still", name)
		}
		if n := bytes.Count(moving, []byte("{animation:")); n != 1 {
			t.Errorf("%s has %d lengths of animations", name, n)
		}
	}
}

// TestREADMESaysWhatIsShown holds that the words beside the picture have its figures.
func TestREADMESaysWhatIsShown(t *testing.T) {
	r, err := read(readme)
	assert.NoError(t, err)
	text, err := os.ReadFile("../../../README.md")
	assert.NoError(t, err)
	for _, name := range []string{lightFile, darkFile} {
		if !bytes.Contains(text, []byte(`"`+dir+"/"+name+`"`)) {
			t.Errorf("the README does not show %s", name)
		}
	}
	for _, g := range newTimeline(r).outages {
		if !bytes.Contains(text, []byte(" "+milliseconds(g))) {
			t.Errorf("the README does not say that there was no answer for %s", milliseconds(g))
		}
	}
}
