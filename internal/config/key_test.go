package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/wire"
)

// testKey has bytes that are easily found in any output.
func testKey(t testing.TB) Key {
	t.Helper()
	ring, err := ParseKeys("test", []byte(hexKey))
	assert.NoError(t, err)
	return ring.Signs
}

// otherHexKey has another mark than hexKey, and alike the same.
var (
	hexKey      = strings.Repeat("ab", wire.KeySize)
	otherHexKey = strings.Repeat("c1", wire.KeySize)
	alike       = strings.Repeat("c3", wire.KeySize)
)

func TestKeyIsNeverPrinted(t *testing.T) {
	k := testKey(t)
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%o", "%c", "%U", "%t", "%64d"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", &k)
		fmt.Fprintf(&out, verb+"\n", struct{ K Key }{k})
		fmt.Fprintf(&out, verb+"\n", []Key{k})
		fmt.Fprintf(&out, verb+"\n", Keyring{k, k})
	}
	text, err := json.Marshal(map[string]any{"key": k})
	assert.NoError(t, err)
	out.Write(text)
	logged := slog.NewRecord(time.Time{}, slog.LevelInfo, "x", 0) // no time, whose figures may be those of the key
	logged.Add("key", k)
	assert.NoError(t, slog.NewTextHandler(&out, nil).Handle(t.Context(), logged))
	for _, secret := range []string{"abab", "ABAB", "171", "10101011", "\xab\xab"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q of the key was printed:\n%s", secret, out.String())
		}
	}
	if !strings.Contains(out.String(), k.Fingerprint().String()) {
		t.Errorf("nothing shows the fingerprint:\n%s", out.String())
	}
}

func TestKeyFileRoundTrip(t *testing.T) {
	k := testKey(t)
	one := Keyring{Signs: k}
	got, err := ParseKeys("key", one.Encode())
	assert.NoError(t, err)
	if got != one || !bytes.Equal(got.Signs.secret[:], bytes.Repeat([]byte{0xab}, wire.KeySize)) {
		t.Error("the key differs after encoding")
	}
	for _, text := range []string{
		hexKey,
		strings.ToUpper(hexKey) + "\r\n",
		"\ufeff# a comment\n\n  " + hexKey + "  \n# another\n",
	} {
		if got, err := ParseKeys("key", []byte(text)); err != nil || got != one {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTwoKeys: the first line signs, and the file is the same again after it was read.
func TestTwoKeys(t *testing.T) {
	text := "# changing\n" + hexKey + "\n\n" + otherHexKey + "\n"
	ring, err := ParseKeys("key", []byte(text))
	assert.NoError(t, err)
	if got := fmt.Sprintf("%x", ring.Secrets()); got != "["+hexKey+" "+otherHexKey+"]" {
		t.Error("the secrets are others, or in another order")
	}
	again, err := ParseKeys("key", ring.Encode())
	if err != nil || again != ring {
		t.Errorf("the keys differ after encoding: %v", err)
	}
	prints := ring.Fingerprints()
	if prints.Signs != ring.Signs.Fingerprint() || prints.Also != ring.Also.Fingerprint() || prints.Signs.Mark() == prints.Also.Mark() {
		t.Errorf("fingerprints %v and %v", prints.Signs, prints.Also)
	}
}

func TestKeyErrors(t *testing.T) {
	var got strings.Builder
	for _, tc := range []struct{ name, text string }{
		{"empty", ""},
		{"only comments", "# nothing\n\n"},
		{"too short", hexKey[:62] + "\n"},
		{"too long", "# key\n  " + hexKey + "ab\n"},
		{"a passphrase", "correct horse battery staple\n"},
		{"one wrong digit", hexKey[:10] + "g" + hexKey[11:] + "\n"},
		{"one key twice", hexKey + "\n" + hexKey + "\n"},
		{"two keys of one mark", hexKey + "\n" + alike + "\n"},
		{"three keys", "# keys\n" + hexKey + "\n" + otherHexKey + "\n\n  " + alike + "\n"},
		{"a second one that is too short", hexKey + "\n" + otherHexKey[1:] + "\n"},
		{"zeros", strings.Repeat("0", 64) + "\n"},
		{"binary", "\x00\xff\xfe\n"},
	} {
		_, err := ParseKeys("/etc/topdog/key", []byte(tc.text))
		if err == nil {
			t.Errorf("%s: accepted", tc.name)
			continue
		}
		checkProblems(t, err, tc.text)
		if strings.Contains(err.Error(), "abab") || strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: the message gives the key away:\n%s", tc.name, err)
		}
		fmt.Fprintf(&got, "=== %s\n%s\n\n", tc.name, err)
	}
	golden.Compare(t, "testdata/key-errors.golden", got.String())
}

func TestLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a key")
	_, err := LoadKeys(path)
	assert.ErrorIs(t, err, fs.ErrNotExist, "a missing file")
	k := testKey(t)
	for _, mode := range []os.FileMode{0o600, 0o400} {
		assert.NoError(t, errors.Join(os.WriteFile(path, Keyring{Signs: k}.Encode(), 0o600), os.Chmod(path, mode)))
		if got, err := LoadKeys(path); err != nil || got.Signs != k {
			t.Errorf("mode %04o: %v", mode, err)
		}
		assert.NoError(t, os.Chmod(path, 0o600))
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o610, 0o601, 0o644} {
		assert.NoError(t, os.Chmod(path, mode))
		want := "chmod 600 '" + path + "'"
		_, err := LoadKeys(path)
		assert.ErrorContains(t, err, want, "mode %04o", mode)
	}
	_, err = LoadKeys(filepath.Dir(path))
	assert.ErrorContains(t, err, keyHint, "a directory")
}

func TestNewKeyIsRandom(t *testing.T) {
	one, other := NewKey(), NewKey()
	if one == other {
		t.Error("two new keys are the same")
	}
	ring := Keyring{Signs: one}
	read, err := ParseKeys("test", ring.Encode())
	assert.NoError(t, err)
	assert.Is(t, ring, read, "the key of a file")
}

func FuzzKey(f *testing.F) {
	f.Add([]byte(hexKey))
	f.Add([]byte("# c\n" + hexKey + "\n"))
	f.Add([]byte(hexKey + "\n" + hexKey))
	f.Add([]byte(hexKey + "\n#\n" + otherHexKey + "\r\n"))
	f.Add([]byte("\ufeff\r\n\t x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := ParseKeys("key", data)
		if err != nil {
			checkProblems(t, err, string(data))
			return
		}
		if again, err := ParseKeys("key", k.Encode()); err != nil || again != k {
			t.Errorf("accepted %q, but not what it means: %v", data, err)
		}
	})
}
