package assert

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that notes how it fails.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.said = fmt.Sprintf(format, args...) }
func (r *recorder) Fatal(args ...any)                 { r.said = "fatal: " + fmt.Sprint(args...) }

func TestFailures(t *testing.T) {
	full := errors.New("the disk is full")
	for name, test := range map[string]struct {
		do   func(testing.TB)
		want string // that it says; "" if it passes
	}{
		"no error":           {func(t testing.TB) { NoError(t, nil) }, ""},
		"an error":           {func(t testing.TB) { NoError(t, full) }, "fatal: the disk is full"},
		"the error":          {func(t testing.TB) { ErrorContains(t, full, "disk", "writing") }, ""},
		"another error":      {func(t testing.TB) { ErrorContains(t, full, "tape", "writing %d", 7) }, `writing 7: got error the disk is full, want one with "tape"`},
		"an error is wanted": {func(t testing.TB) { ErrorContains(t, nil, "tape", "") }, `got error <nil>, want one with "tape"`},
		"none is wanted":     {func(t testing.TB) { ErrorContains(t, full, "", "") }, "got error the disk is full, want none"},
		"none, as wanted":    {func(t testing.TB) { ErrorContains(t, nil, "", "") }, ""},
		"this error":         {func(t testing.TB) { ErrorIs(t, fmt.Errorf("writing: %w", full), full, "") }, ""},
		"not this error":     {func(t testing.TB) { ErrorIs(t, io.EOF, full, "writing") }, "writing: got error EOF, want the disk is full"},
		"the value":          {func(t testing.TB) { Is(t, time.Second, time.Second, "") }, ""},
		"not the value":      {func(t testing.TB) { Is(t, time.Second, time.Minute, "the %s", "pause") }, "the pause: got 1m0s, want 1s"},
		"another text":       {func(t testing.TB) { Is(t, "a", "b ", "") }, `got "b ", want "a"`},
		"equal":              {func(t testing.TB) { Equal(t, []int{1}, []int{1}, "the list") }, ""},
		"hidden":             {func(t testing.TB) { Equal(t, recorder{said: "a"}, recorder{said: "b"}, "it") }, "it: (-want +got):\n"},
		"not equal":          {func(t testing.TB) { Equal(t, []int{1}, []int{2}, "the list") }, "the list: (-want +got):\n"},
	} {
		var r recorder
		test.do(&r)
		if r.said == "" != (test.want == "") || !strings.HasPrefix(r.said, test.want) {
			t.Errorf("%s: it says %q, want %q", name, r.said, test.want)
		}
	}
}

func TestUntil(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  string
	}{
		"at once": {0, ""},
		"in time": {9 * time.Second, ""},
		"never":   {time.Hour, "fatal: never: the door is open"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r recorder
			began := time.Now()
			Until(&r, "the door is open", func() bool { return time.Since(began) >= test.after })
			Is(t, test.want, r.said, "%s", name)
		})
	}
}
