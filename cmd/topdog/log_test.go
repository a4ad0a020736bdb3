package main

import (
	"bytes"
	"errors"
	stdlog "log"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"topdog/internal/lab/assert"
)

// What the log is told of another machine or of a program steers no terminal, and chooses no
// level in the journal.
func TestLogIsPrintable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	for _, test := range []struct {
		name    string
		journal bool
		message string
		want    string
	}{
		{"journal", true, "café follows pi3", "<6>café follows pi3\n"},
		{"journal, escapes", true, "\x1b[2J \u009b1m \u202e \xff", "<6>?[2J ?1m ? ?\n"},
		{"journal, a level of its own", true, "printed\n<0>the end", "<6>printed\n<6><0>the end\n"},
		{"terminal", false, "a\tb\nc\rd", "Jan  2 03:04:05.006 info    a\tb\nc?d\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := formatter{journal: test.journal}.Format(&logrus.Entry{Time: at, Level: logrus.InfoLevel, Message: test.message})
			if diff := cmp.Diff(test.want, string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What a library logs is one line each, for debugging.
func TestDebugLog(t *testing.T) {
	var out bytes.Buffer
	log := newLog(logrus.DebugLevel)
	log.SetOutput(&out)
	stdlog.New(debugLog{log}, "", 0).Print("http: TLS handshake error")
	if !strings.HasSuffix(out.String(), "http: TLS handshake error\n") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("logged %q", out.String())
	}
}

func TestComplainIsPrintable(t *testing.T) {
	var out bytes.Buffer
	complain(&out, errors.New("pi3\x1b[2J\n  has it"))
	assert.Equal(t, "topdog: pi3?[2J\n  has it\n", out.String(), "")
}

// JSON on a terminal is the same JSON, in characters that steer nothing.
func TestJSONIsPrintable(t *testing.T) {
	var out bytes.Buffer
	assert.NoError(t, writeJSON(&out, map[string]string{"name": "caf\u00e9 \x1b\u009b\u202e\x7f\U000e0041"}, ""))
	assert.Equal(t, `{"name":"café \u001b\u009b\u202e\u007f\udb40\udc41"}`+"\n", out.String(), "")
}
