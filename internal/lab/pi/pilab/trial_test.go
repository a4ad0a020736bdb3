package pilab

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/scene"
)

// well is a stage on which all lines of the trial are known, and all goes well.
type well struct{ *trial }

func (well) Machines() []int                                     { return []int{1, 2, 3} }
func (well) Start(int, []string) error                           { return nil }
func (well) Set(int, []string) error                             { return nil }
func (well) Signal(int, scene.Processes, scene.Signal) error     { return nil }
func (well) Cable(int, bool) error                               { return nil }
func (well) Power(int, bool) error                               { return nil }
func (well) Filter([]scene.Filter) error                         { return nil }
func (well) Topdog(int, []string) (said string, err error)       { return "", nil }
func (well) Holders() []int                                      { return []int{3} }
func (well) Answers(int) bool                                    { return true }
func (well) Mark()                                               {}
func (well) Seen() (moves int, two bool)                         { return 0, false }
func (well) Pass(time.Duration)                                  {}
func (well) Now() time.Duration                                  { return 0 }
func (well) Until(_ time.Duration, missing func() string) string { return missing() }
func (well) Line(words, _ []string) (known bool, err error) {
	return words[0] == "configure" || words[0] == "outage", nil
}
func (well) Do(_ []int, _ time.Duration, words, _ []string) (known bool, err error) {
	return boardLine(words) != nil, nil
}

func (well) State(n int) (scene.State, error) {
	return scene.State{
		Role: map[bool]string{true: "leader", false: "follower"}[n == 3], Leader: "pi3", Holding: n == 3, Reason: "handed_over",
		Sees: map[string]string{"pi1": "passing", "pi2": "passing", "pi3": "passing"},
	}, nil
}

// Every line of the scene is one that the trial knows, however many boards are emulated.
func TestScene(t *testing.T) {
	for n, line := range strings.Split(text(), "\n") {
		if !strings.HasPrefix(line, "#") && strings.ContainsAny(line, "{}") && !strings.Contains(line, "status=0 }") {
			t.Errorf("line %d: nothing stands in for a name: %s", n+1, line)
		}
	}
	count := map[int]int{}
	for emulated := 1; emulated <= trialBoards; emulated++ {
		all, err := steps(emulated)
		assert.NoError(t, err)
		count[emulated] = len(all)
		for _, s := range all {
			assert.ErrorIs(t, s.scene.Play(well{&trial{emulated: emulated}}, 0), nil, "%s", s.title)
		}
	}
	assert.Equal(t, map[int]int{1: 10, 2: 17, 3: 17}, count, "steps by number of emulated boards")
	for _, wrong := range []string{"pi3 explode", "within x: pi3 leads", `pi3 sh "`} {
		s, err := scene.Parse("x", wrong)
		if err == nil {
			err = s.Play(well{&trial{emulated: 1}}, 0)
		}
		if err == nil {
			t.Errorf("%q is a line", wrong)
		}
	}
}

// Where something is missing the trial says so before it builds anything, which takes minutes.
func TestRunLooksBeforeItBuilds(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	path := t.TempDir()
	assert.NoError(t, os.Symlink(bash, filepath.Join(path, "bash")))
	t.Setenv("PATH", path)
	var out bytes.Buffer
	dir := t.TempDir()
	err = (&trial{options: &options{dir: dir, source: "../../../.."}, emulated: 1, out: &out}).run(t.Context())
	if err == nil {
		t.Fatal("it ran without any program")
	}
	for _, want := range []string{"apt-get install", "mmdebstrap", "qemu-system-arm"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || out.Len() > 0 {
		t.Errorf("it left %v and said %q", left, out.String())
	}
}
