package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// What topdog init prints, and the lines of the configuration that is there then, is in testdata/init.golden. A board with
// the name of another one has its directory.
func TestInit(t *testing.T) {
	plain := Board{Address: "10.0.0.9", Interface: "eth0"}
	page, asked, strict := plain, plain, plain
	page.Page, asked.AskPage = true, true
	strict.Strict, strict.Voters = true, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	otherVoters, noVoters := strict, strict
	otherVoters.Voters, noVoters.Voters = []string{"10.0.0.1", "10.0.0.2", "10.0.0.4"}, nil
	parent := t.TempDir()
	var got strings.Builder
	for _, test := range []struct {
		name, directory string
		board           Board
	}{
		{"a board", "plain", plain},
		{"voters afterwards, which are not given to a board in passing", "plain", strict},
		{"with the page", "page", page},
		{"nobody says whether with the page", "asked", asked},
		{"voters", "strict", strict},
		{"the same again", "strict", strict},
		{"other voters", "strict", otherVoters},
		{"without a terminal and without voters", "nothing", noVoters},
	} {
		path := filepath.Join(parent, test.directory, configName)
		test.board.Path = path
		var out bytes.Buffer
		err := test.board.initIn(networkOf("10.0.0.1"), strings.NewReader(""), &out)
		fmt.Fprintf(&got, "=== %s\n%s", test.name, strings.ReplaceAll(out.String(), filepath.Dir(path), "/etc/topdog"))
		if err != nil {
			fmt.Fprintf(&got, "--> error: %s\n", strings.ReplaceAll(err.Error(), filepath.Dir(path), "/etc/topdog"))
		}
		text, err := os.ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) {
			assert.NoError(t, err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") && line != "\n" {
				got.WriteString("--> " + line)
			}
		}
		got.WriteString("\n")
	}
	golden.Compare(t, "testdata/init.golden", got.String())
}
