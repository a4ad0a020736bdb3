package installcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/wire"
)

// TestScenes plays each file of testdata: the steps, which are behind a $, and what is written below them. That is what the
// script says, its status, what it does to the boards and which keys they have then. Keys are named in the order in which
// they appear. What the sentences say must hold; -update writes the rest.
//
//	$ site                    begin anew, without boards; a file does so first
//	$ board NAME [ARCH]       a board on which nothing is installed
//	$ cluster NAME...         boards that run with one key, key-1
//	$ set BOARD/FILE [TEXT]   decide how a board answers: see the programs of the boards
//	$ unset BOARD/FILE
//	$ packages VERSION ARCH...  in the directory DEBS
//	$ keep, $ back            remember how all is, and make it so again
//	$ install ARGUMENT...     run the script
func TestScenes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	assert.NoError(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			var program string
			if filepath.Base(file) != dryRuns {
				if testing.Short() {
					t.Skip("-short: to install a cluster takes seconds")
				}
				var err error
				program, err = topdog()
				assert.NoError(t, err)
			}
			text, err := os.ReadFile(file)
			assert.NoError(t, err)
			p := &player{t: t, program: program}
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSuffix(line, "\n")
				switch {
				case strings.HasPrefix(line, "#"):
					p.comment(line)
				case strings.HasPrefix(line, "$ "):
					p.step(line)
				}
			}
			golden.Compare(t, file, p.text.String())
		})
	}
}

// dryRuns is the scene in which nothing is set up, so that it needs no program.
const dryRuns = "dry-run.txt"

// player plays a scene.
type player struct {
	*site
	t         *testing.T
	program   string
	text      strings.Builder
	inComment bool
	known     []string          // fingerprints
	had       map[string]string // the keys of the boards, after the last step
	kept      string            // a directory
}

func (p *player) comment(line string) {
	if !p.inComment && p.text.Len() > 0 {
		p.text.WriteString("\n")
	}
	p.inComment = true
	p.text.WriteString(line + "\n")
}

func (p *player) step(line string) {
	p.t.Helper()
	p.inComment = false
	p.text.WriteString(line + "\n")
	verb, rest, _ := strings.Cut(strings.TrimPrefix(line, "$ "), " ")
	args := strings.Fields(rest)
	switch verb {
	case "site":
		p.site, p.known, p.had = newSite(p.t, p.program), nil, map[string]string{}
	case "board":
		p.board(args[0], append(args, "arm64")[1])
	case "cluster":
		for _, b := range args {
			p.board(b, "arm64")
			p.write("boards/"+b+"/version", version+"\n", 0o644)
			p.write("boards/"+b+"/etc/topdog/topdog.toml", "address = \""+first+"\"\nkey_file = \"key\"\n", 0o644)
			p.write("boards/"+b+"/etc/topdog/key", strings.Repeat("00112233445566778899aabbccddeeff", 2)+"\n", 0o600)
			p.write("boards/"+b+"/runs", "", 0o644)
		}
		p.learn()
	case "set":
		file, text, _ := strings.Cut(rest, " ")
		text, err := strconv.Unquote(`"` + text + `"`)
		assert.NoError(p.t, err)
		p.write("boards/"+file, strings.ReplaceAll(text, "ESCAPES", escapes), 0o600)
	case "unset":
		assert.NoError(p.t, os.Remove(filepath.Join(p.dir, "boards", rest)))
	case "packages":
		for _, arch := range args[1:] {
			p.write("debs/topdog_"+args[0]+"_"+arch+".deb", args[0]+" "+arch+"\n", 0o644)
		}
	case "keep":
		p.kept = filepath.Join(p.t.TempDir(), "boards")
		p.copy(filepath.Join(p.dir, "boards"), p.kept)
	case "back":
		assert.NoError(p.t, os.RemoveAll(filepath.Join(p.dir, "boards")))
		p.copy(p.kept, filepath.Join(p.dir, "boards"))
		p.learn()
	case "install":
		p.played(args)
	default:
		p.t.Fatalf("there is no step %q", line)
	}
}

// copy copies a directory, with the modes of the files.
func (p *player) copy(from, to string) {
	p.t.Helper()
	assert.NoError(p.t, exec.Command("cp", "-a", from, to).Run())
}

// played runs the script and writes down what comes of it.
func (p *player) played(args []string) {
	p.t.Helper()
	for i, a := range args {
		a = strings.ReplaceAll(a, "DEBS", filepath.Join(p.dir, "debs"))
		args[i] = strings.Trim(keyName.ReplaceAllStringFunc(a, p.fingerprint), `"`)
	}
	out, status := p.install(args...)
	changed := p.changes()
	for line := range strings.Lines(p.named(out)) {
		p.text.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
	}
	fmt.Fprintf(&p.text, "= status %d\n%s", status, p.named(changed))
}

// changes is what was done to the boards, and which keys they have now.
func (p *player) changes() string {
	p.t.Helper()
	var all strings.Builder
	for _, name := range []string{"ssh-options", "built"} {
		text := p.take(name)
		if line, _, _ := strings.Cut(text, "\n"); line != "" && line != "ConnectTimeout=10" {
			fmt.Fprintf(&all, "= %s: %s\n", name, line)
		}
		assert.Is(p.t, true, name != "built" || strings.Count(text, "\n") < 2, "packages are built once")
	}
	before := p.had
	p.learn()
	for _, b := range p.boards() {
		log := strings.ReplaceAll(strings.TrimSpace(p.take("boards/"+b+"/log")), "\n", "; ")
		key := ""
		if p.had[b] != before[b] {
			key = " now has " + p.had[b]
		}
		if log != "" || key != "" {
			fmt.Fprintf(&all, "= %s\n", strings.TrimSuffix(b+key+": "+log, ": "))
		}
	}
	return all.String()
}

// take reads a file and removes it.
func (p *player) take(name string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		assert.NoError(p.t, err)
	}
	return string(text)
}

// learn gives the keys of the boards their names.
func (p *player) learn() {
	p.t.Helper()
	p.had = map[string]string{}
	for _, b := range p.boards() {
		keys := p.keys(b)
		for _, key := range []wire.Fingerprint{keys.Signs, keys.Also} {
			if key == 0 {
				continue
			}
			if !slices.Contains(p.known, key.String()) {
				p.known = append(p.known, key.String())
			}
			p.had[b] = strings.TrimPrefix(p.had[b]+"+"+p.named(key.String()), "+")
		}
	}
}

var (
	keyName = regexp.MustCompile(`key-\d`)
	// The script sorts fingerprints, of which some are random, and bash has architectures in an order of its own.
	swapped = regexp.MustCompile(`(key-[2-9])( and | )(key-1)\b`)
	kinds   = regexp.MustCompile(`((arm64|armhf|amd64) )+(arm64|armhf|amd64)`)
)

func (p *player) fingerprint(name string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "key-"))
	return p.known[n-1]
}

// named is a text with the names of keys and without what differs from run to run.
func (p *player) named(text string) string {
	for i, key := range p.known {
		text = strings.ReplaceAll(text, key, fmt.Sprintf("key-%d", i+1))
	}
	text = strings.ReplaceAll(text, p.dir, "DIR")
	text = swapped.ReplaceAllString(text, "$3$2$1")
	return kinds.ReplaceAllStringFunc(text, func(list string) string {
		return strings.Join(slices.Sorted(slices.Values(strings.Fields(list))), " ")
	})
}
