package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// firstBoard makes a configured board and returns its directory.
func firstBoard(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mustWrite(t, board(dir))
	return dir
}

func exported(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	assert.NoError(t, board(dir).Export(&b))
	return b.Bytes()
}

// contents are the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names(t, dir) {
		all[name] = read(t, filepath.Join(dir, name))
	}
	return all
}

// importTo is what a board does with what was exported.
func importTo(dir string, sent []byte, force bool) (*imported, error) {
	b := board(dir)
	b.Force = force
	return b.importFrom(bytes.NewReader(sent))
}

func TestImportMakesTheSameBoard(t *testing.T) {
	open := t.TempDir() // a group without a key
	assert.NoError(t, os.WriteFile(filepath.Join(open, configName), []byte("address = \"10.0.0.9\"\nkey_file = \"none\"\n"), 0o644))
	for _, first := range []string{firstBoard(t), open} {
		second := filepath.Join(t.TempDir(), "etc", "topdog")
		done, err := importTo(second, exported(t, first), false)
		assert.NoError(t, err)
		if !done.configIsNew || done.keyIsNew != (first != open) {
			t.Errorf("%+v", done)
		}
		assert.Equal(t, contents(t, first), contents(t, second), "files")
		for _, name := range names(t, first) {
			assert.Is(t, mode(t, filepath.Join(first, name)), mode(t, filepath.Join(second, name)), "the mode of %s", name)
		}

		again, err := importTo(second, exported(t, first), false)
		if err != nil || again.configIsNew || again.keyIsNew || again.own != nil {
			t.Errorf("the second time: %+v, %v", again, err)
		}
	}
}

// What is there: kept where it fits, an error where it does not, and replaced
// only by force.
func TestImportOntoAConfiguredBoard(t *testing.T) {
	first := firstBoard(t)
	sent := exported(t, first)
	text, key := read(t, filepath.Join(first, configName)), read(t, filepath.Join(first, keyName))
	foreign := strings.Repeat("ab", 32) + "\n"
	for _, tc := range []struct {
		name, config, key string
		own               []string
		want              string // in the error
	}{
		{"its own priority", "priority = 200\nled = \"GPIO17\"\n" + text, key, []string{"priority", "led"}, ""},
		{"a key alone", "", key, nil, ""},
		{"a configuration alone", text, "", nil, ""},
		{"another address", strings.Replace(text, ".250", ".251", 1), key, nil, `address = "192.168.1.251" here, and "192.168.1.250" in what came`},
		{"another heartbeat", "heartbeat = \"50ms\"\n" + text, key, nil, "heartbeat = "},
		{"another key", text, foreign, nil, "this board belongs to another group"},
		{"no key", strings.Replace(text, `key_file = "key"`, `key_file = "none"`, 1), "", nil, `key_file = "none" on one side only`},
		{"a broken configuration", "adress = 3\n", key, nil, "--force replaces it"},
		{"a broken key", text, "x\n", nil, "--force replaces it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{configName: tc.config, keyName: tc.key} {
				if content != "" {
					assert.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
				}
			}
			before := contents(t, dir)
			done, err := importTo(dir, sent, false)
			if tc.want != "" {
				assert.ErrorContains(t, err, tc.want, "")
				assert.Equal(t, before, contents(t, dir), "files after a refused import")
			} else {
				assert.NoError(t, err)
				assert.Equal(t, tc.own, done.own, "own")
				assert.Is(t, tc.config == "", done.configIsNew, "the configuration is new")
				assert.Is(t, tc.key == "", done.keyIsNew, "the key is new")
				if tc.config != "" {
					assert.Is(t, tc.config, read(t, filepath.Join(dir, configName)), "the board's own configuration")
				}
			}
			_, err = importTo(dir, sent, true)
			assert.ErrorIs(t, err, nil, "by force")
			assert.Equal(t, contents(t, first), contents(t, dir), "files after force")
		})
	}
}

func TestImportRefusesOtherInput(t *testing.T) {
	filesOf := func(text, key string) string {
		b, err := json.Marshal(files{[]byte(text), []byte(key)})
		assert.NoError(t, err)
		return string(b)
	}
	const text = "address = \"10.0.0.9\"\nkey_file = \"key\"\n"
	key := strings.Repeat("cd", 32)
	whole := filesOf(text, key)
	outside := t.TempDir()
	keyIn := func(file string) string {
		return filesOf(fmt.Sprintf("address = \"10.0.0.9\"\nkey_file = %q\n", file), key)
	}
	for _, tc := range []struct{ name, input, want string }{
		{"nothing", "", "nothing came on standard input: see what the other end of the pipe says"},
		{"text", "sudo: a password is required\n", "is not what `topdog init --export` writes"},
		{"half", whole[:60], "is not what `topdog init --export` writes: unexpected EOF"},
		{"another file", `{"../etc/passwd": "eA=="}`, `unknown field "../etc/passwd"`},
		{"more than the files", whole + "{}", fmt.Sprintf("it goes on after byte %d", len(whole))},
		{"a file that is no base64", `{"key": "*"}`, "illegal base64 data at input byte 0"},
		{"a long key", filesOf(text, strings.Repeat("#", 1<<16)), "the key has 65536 bytes, at most 4096 are allowed"},
		{"a long configuration", filesOf(strings.Repeat("#", config.MaxFileBytes+1), key), "the configuration has "},
		{"without end", `{"key": "` + strings.Repeat("A", maxExported), "unexpected EOF"},
		{"no configuration", filesOf("", key), "there is no configuration in it"},
		{"no key", filesOf(text, ""), "needs a key, and none came with it"},
		{"a bad key", filesOf(text, key[1:]), "the key that came:1:"},
		{"the key elsewhere", keyIn(filepath.Join(outside, "key")), "writes a key beside"},
		{"the key elsewhere, by dots", keyIn("../key"), "writes a key beside"},
		{"the key below", keyIn("keys/key"), "writes a key beside"},
		{"the key as the configuration", keyIn("topdog.toml"), "writes a key beside"},
		{"a bad configuration", filesOf("x = 1\n", key), "cannot be used here"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parent := t.TempDir()
			for _, force := range []bool{false, true} {
				_, err := importTo(filepath.Join(parent, "new"), []byte(tc.input), force)
				assert.ErrorContains(t, err, tc.want, "force %v", force)
				if err != nil && strings.Contains(err.Error(), key[2:10]) {
					t.Errorf("force %v: the error shows the key: %v", force, err)
				}
			}
			assert.Equal(t, []string(nil), append(names(t, parent), names(t, outside)...), "written files")
		})
	}
}

// A board that keeps its own configuration also keeps its key where that says.
func TestImportKeepsAKeyElsewhere(t *testing.T) {
	first, dir, elsewhere := firstBoard(t), t.TempDir(), filepath.Join(t.TempDir(), "secret")
	text := strings.Replace(read(t, filepath.Join(first, configName)), `"key"`, fmt.Sprintf("%q", elsewhere), 1)
	assert.NoError(t, os.WriteFile(filepath.Join(dir, configName), []byte(text), 0o644))
	done, err := importTo(dir, exported(t, first), false)
	assert.NoError(t, err)
	if done.configIsNew || !done.keyIsNew || read(t, elsewhere) != read(t, filepath.Join(first, keyName)) {
		t.Errorf("%+v", done)
	}
}

func TestExportRefuses(t *testing.T) {
	dir := firstBoard(t)
	path := filepath.Join(dir, configName)
	text := read(t, path)
	for _, tc := range []struct{ name, text, want string }{
		{"an id", "id = 7\n" + text, "id is this board's own"},
		{"a name", "name = \"pi1\"\n" + text, "name is this board's own"},
		{"a mistake", "x = 1\n" + text, "x"},
		{"no key", strings.Replace(text, `"key"`, `"elsewhere"`, 1), "there is no key file"},
	} {
		assert.NoError(t, os.WriteFile(path, []byte(tc.text), 0o644))
		var out bytes.Buffer
		err := board(dir).Export(&out)
		assert.ErrorContains(t, err, tc.want, "%s", tc.name)
		assert.Is(t, true, errors.As(err, new(config.Errors)), "%s: %v is an error of the configuration", tc.name, err)
		assert.Is(t, 0, out.Len(), "%s: bytes that are written", tc.name)
	}
}

// FuzzImport: no input makes it panic, or write anything but the two files.
func FuzzImport(f *testing.F) {
	for _, seed := range []string{"", "x", `{"configuration": "eA==", "key": "eA=="}`, strings.Repeat("\x00", 1024)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		text, key, err := unpack(bytes.NewReader(input))
		if err == nil && text == nil {
			t.Fatal("no error and no configuration")
		}
		if int64(len(text)) > config.MaxFileBytes || int64(len(key)) > config.MaxKeyFileBytes {
			t.Fatalf("%d and %d bytes", len(text), len(key))
		}
	})
}
