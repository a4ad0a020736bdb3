package installcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/wire"
)

// keys are the fingerprints of the keys of a board.
func (s *site) keys(board string) wire.Keys {
	s.t.Helper()
	keys, err := config.LoadKeys(filepath.Join(s.dir, "boards", board, "etc/topdog/key"))
	must(s.t, err)
	return keys.Fingerprints()
}

// keySite is a site whose boards run with one key, and the arguments that name them.
func keySite(t *testing.T, boards ...string) (s *site, all []string) {
	t.Helper()
	s = newSite(t, boards...)
	for _, b := range boards {
		all = append(all, "pi@"+b)
		s.write("boards/"+b+"/version", version+"\n", 0o644)
		s.write("boards/"+b+"/etc/topdog/topdog.toml", "address = \""+first+"\"\nkey_file = \"key\"\n", 0o644)
		s.write("boards/"+b+"/etc/topdog/key", strings.Repeat("00112233445566778899aabbccddeeff", 2)+"\n", 0o600)
		s.is(b, "runs")
	}
	return s, all
}

// forget forgets what has changed the boards until now.
func (s *site) forget(boards ...string) {
	for _, b := range boards {
		s.log(b)
	}
}

// oneKey holds that these boards have one key, and returns it.
func (s *site) oneKey(boards ...string) wire.Fingerprint {
	s.t.Helper()
	key := s.keys(boards[0])
	for _, b := range boards {
		if s.keys(b) != key || key.Also != 0 {
			s.t.Errorf("%s has the keys %+v, and %s has %+v", b, s.keys(b), boards[0], key)
		}
	}
	return key.Signs
}

// A new key goes to all boards, and each step is done on all of them before the next one.
func TestRotateKey(t *testing.T) {
	boards := []string{"b1", "b2", "b3"}
	s, all := keySite(t, boards...)
	old := s.oneKey(boards...)

	out := s.install(0, append(all, "--rotate-key", "--dry-run")...)
	s.says(out, fmt.Sprintf("[pi@b1] signs with the key %v\n", old), fmt.Sprintf("All boards would change to a new key; they have %v.", old))
	if s.oneKey(boards...) != old {
		t.Error("a dry run has changed the key")
	}
	s.forget(boards...)

	out = s.install(0, append(all, "--rotate-key")...)
	next := s.oneKey(boards...)
	if next == old {
		t.Error("the key is the old one")
	}
	s.says(out, fmt.Sprintf("[pi@b1] added the key %v", next),
		fmt.Sprintf("changes the key to %v; if this is interrupted, --keep-key %v goes on, and --keep-key %v goes back", next, next, old),
		fmt.Sprintf("[pi@b2] added the key %v", next), fmt.Sprintf("[pi@b3] added the key %v", next),
		fmt.Sprintf("[pi@b1] signs with the key %v from now on", next), "[pi@b2] signs with", "[pi@b3] signs with",
		fmt.Sprintf("[pi@b1] dropped the key %v", old), "[pi@b2] dropped", "[pi@b3] dropped",
		fmt.Sprintf("The key is %v on all boards that are well.", next))
	steps := []string{fmt.Sprintf("topdog key first %v", next), "topdog key show", fmt.Sprintf("topdog key drop %v", old)}
	s.logs("b1", append([]string{"topdog key show", "topdog key add", "topdog key show", fmt.Sprintf("topdog key first %v", old), "topdog key export", "topdog key export"}, steps...)...)
	for _, b := range boards[1:] {
		s.logs(b, append([]string{"topdog key show", "topdog key add --from -"}, steps...)...)
	}
}

// A change that was interrupted goes on or goes back, as the administrator says.
func TestInterruptedRotation(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"add", "first", "drop"} {
		t.Run(step, func(t *testing.T) {
			boards := []string{"b1", "b2"}
			s, all := keySite(t, boards...)
			old := s.oneKey(boards...)
			s.is("b2", "refuses-"+step)
			out := s.install(1, append(all, "--rotate-key")...)
			s.says(out, "[pi@b2] FAILED: ", "    topdog: nothing was changed, because of these boards", "Stopped; the address is where it was. --keep-key ",
				"1 of 2 boards failed")
			named := regexp.MustCompile(`--keep-key (\w{8}) goes on, and --keep-key (\w{8}) goes back`).FindStringSubmatch(out)
			if named == nil || named[2] != old.String() {
				t.Fatalf("the keys are not named: %q", named)
			}
			s.says(s.install(1, append(all, "--rotate-key")...), "Nothing was changed: the boards have the keys ", "--keep-key KEY")

			must(t, os.Remove(filepath.Join(s.dir, "boards/b2/refuses-"+step)))
			for way, keep := range map[string]string{"on": named[1], "back": named[2]} {
				s := s.copy(t)
				s.says(s.install(0, append(slices.Clone(all), "--keep-key", keep)...), "The key is "+keep)
				if got := s.oneKey(boards...).String(); got != keep {
					t.Errorf("it goes %s: the key is %s, want %s", way, got, keep)
				}
			}
		})
	}
}

// copy is another site where everything is as it is at this one.
func (s *site) copy(t *testing.T) *site {
	t.Helper()
	other := siteIn(t, t.TempDir())
	other.env = append(other.env, s.env[len(s.env)-1]) // TOPDOG
	must(t, exec.Command("cp", "-a", s.dir+"/.", other.dir).Run())
	return other
}

// A board that cannot be reached stops everything before it begins, unless the key has leaked. When
// it comes back it gets the key of the others.
func TestRotateKeyWithoutABoard(t *testing.T) {
	s, all := keySite(t, "b1", "b2", "b3")
	old := s.oneKey("b1", "b2", "b3")
	s.is("b3", "dead")
	s.says(s.install(1, append(all, "--rotate-key")...), "[pi@b3] FAILED: it cannot be reached by ssh", "Nothing was changed.", "1 of 3 boards failed")
	if s.oneKey("b1", "b2", "b3") != old {
		t.Error("the key was changed")
	}
	s.says(s.install(1, append(all, "--rotate-key", "--force")...), "The key is ", "pi@b3: it cannot be reached by ssh")
	next := s.oneKey("b1", "b2")
	if next == old || s.keys("b3").Signs != old {
		t.Errorf("the keys are %v and %+v, and were %v", next, s.keys("b3"), old)
	}
	must(t, os.Remove(filepath.Join(s.dir, "boards/b3/dead")))
	s.install(0, append(all, "--keep-key", next.String())...)
	if s.oneKey("b1", "b2", "b3") != next {
		t.Error("the board that was off has not got the key")
	}
}

// A board that can be reached and does not get the key would be cut off by the next steps. --force stops there as well, and
// says which board it was.
func TestForceCutsNobodyOff(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ board, refuses, says string }{
		{"b1", "refuses-export", "[pi@b1] FAILED: it did not give the key "},
		{"b2", "refuses-add", "[pi@b2] FAILED: it did not take the key "},
		{"b2", "refuses-first", "[pi@b2] FAILED: it does not sign with the key "},
		{"b2", "old-program", "[pi@b2] FAILED: it does not tell which keys it has"},
	} {
		t.Run(test.refuses, func(t *testing.T) {
			s, all := keySite(t, "b1", "b2", "b3")
			old := s.oneKey("b1", "b2")
			s.is(test.board, test.refuses)
			s.is("b3", "dead")
			out := s.install(1, append(all, "--rotate-key", "--force")...)
			s.says(out, "[pi@b3] FAILED: it cannot be reached", test.says)
			if strings.Contains(out, "The key is") {
				t.Errorf("it goes on:\n%s", out)
			}
			for _, b := range []string{"b1", "b2"} {
				if !s.keys(b).Accept(old) {
					t.Errorf("%s has dropped the old key", b)
				}
			}
		})
	}
}

// The file of a board may have a key that its daemon has not, or not any more. A change that goes on has each daemon read it.
func TestGoingOnReachesTheDaemons(t *testing.T) {
	s, all := keySite(t, "b1", "b2")
	key := s.oneKey("b1", "b2")
	s.says(s.install(0, append(all, "--keep-key", key.String())...), fmt.Sprintf("The key is %v", key))
	for _, b := range []string{"b1", "b2"} {
		first := fmt.Sprintf("topdog key first %v", key)
		s.logs(b, "topdog key show", first, first, "topdog key show", "topdog key drop")
	}
}

// A board that has missed two changes has the key before the last one. Nobody can go back to that.
func TestMissedTwoChanges(t *testing.T) {
	s, all := keySite(t, "b1", "b2", "b3")
	oldest := s.oneKey("b1", "b2", "b3")
	s.is("b3", "dead")
	s.install(1, append(all, "--rotate-key", "--force")...)
	s.install(1, append(all, "--rotate-key", "--force")...)
	must(t, os.Remove(filepath.Join(s.dir, "boards/b3/dead")))
	key := s.oneKey("b1", "b2")
	out := s.install(1, "pi@b1", "pi@b3", "--keep-key", key.String())
	s.says(out, "[pi@b3] FAILED: it did not take the key", "topdog init --export", "topdog init --import --force", fmt.Sprintf("--keep-key %v goes on.", key))
	if strings.Contains(out, "goes back") || s.keys("b3").Signs != oldest || s.oneKey("b1", "b2") != key {
		t.Errorf("b3 has %+v:\n%s", s.keys("b3"), out)
	}
}

// If the connection is lost behind the first change, nobody knows whether it was made.
func TestLostBehindAdd(t *testing.T) {
	s, all := keySite(t, "b1", "b2")
	old := s.oneKey("b1", "b2")
	s.is("b1", "lost-behind-add")
	out := s.install(1, append(all, "--rotate-key")...)
	s.says(out, "[pi@b1] FAILED: it cannot have a new key", fmt.Sprintf("pi@b1 may have a new key, which it does not sign with: topdog key show on it names it. --keep-key with that one goes on, --keep-key %v goes back.", old))
	if strings.Contains(out, "Nothing was changed") || s.keys("b1").Also == 0 {
		t.Errorf("b1 has the keys %+v:\n%s", s.keys("b1"), out)
	}
}

// What a board says meanwhile does not steer the terminal.
func TestRotationDoesNotSteerTheTerminal(t *testing.T) {
	s, all := keySite(t, "b1", "b2")
	s.write("boards/b2/says", escapes+" waits\n", 0o644)
	out := s.install(0, append(all, "--rotate-key")...)
	s.says(out, "[pi@b2] [2J]0;x31m31m waits", "The key is ")
	s.is("b2", "refuses-drop")
	out += s.install(1, append(all, "--rotate-key")...)
	if found := steers(out); found != "" {
		t.Errorf("%+q reaches the terminal:\n%+q", found, out)
	}
}

func TestRotateKeyRefused(t *testing.T) {
	s, all := keySite(t, "b1", "b2")
	s.is("b2", "old-program")
	s.says(s.install(1, append(all, "--rotate-key")...), "[pi@b2] FAILED: it does not tell which keys it has", "upgrade it first", `unknown command "key"`, "Nothing was changed.")
	must(t, os.Remove(filepath.Join(s.dir, "boards/b2/old-program")))
	s.is("b1", "refuses-add")
	s.says(s.install(1, append(all, "--rotate-key")...), "[pi@b1] FAILED: it cannot have a new key", "Nothing was changed.")
	s.says(s.install(1, append(all, "--keep-key", "00000000")...), "Nothing was changed: no board has the key 00000000. They have "+s.keys("b1").Signs.String())
	s.board("b9", "arm64")
	s.says(s.install(1, "pi@b1", "pi@b9", "--rotate-key"), "[pi@b9] FAILED: it is not configured", "Nothing was changed.")
	for _, args := range [][]string{{"--force"}, {"--rotate-key", "--address", first}, {"--rotate-key", "--page"}, {"--keep-key", "nonsense"}} {
		if out := s.install(2, append([]string{"pi@b1"}, args...)...); !strings.Contains(out, "see --help") {
			t.Errorf("%q: %s", args, out)
		}
	}
}
