package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Handover is the answer to POST /v1/resign, /v1/leave and /v1/drain.
type Handover struct {
	Leader     string `json:"leader"` // id of the board that leads now; "" if there is none
	LeaderName string `json:"leader_name"`
	Text       string `json:"text"` // "handed over to pi2 (192.168.1.12)"
}

// failure is the answer to a request that failed.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// answer writes JSON. It remembers whether the header has gone out, because an
// error after that can only be appended.
type answer struct {
	http.ResponseWriter
	begun bool
}

// Unwrap gives http.ResponseController its methods.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// json writes v as one line. It fails before anything is written, if v has no
// JSON; that the client has gone is no failure.
func (a *answer) json(code int, v any) error {
	line, err := encode(v)
	if err == nil {
		a.text(code, line)
	}
	return err
}

// encode writes v as one line of JSON. It fails if v has none (NaN has none).
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no page shows this
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("the answer has no JSON: %w", err)
	}
	return line.Bytes(), nil
}

// text writes a line that is JSON already.
func (a *answer) text(code int, line []byte) {
	if !a.begun {
		if a.Header().Get("Content-Type") == "" {
			a.Header().Set("Content-Type", "application/json")
		}
		a.Header().Set("Cache-Control", "no-store")
		a.WriteHeader(code)
		a.begun = true
	}
	_, _ = a.Write(line)
}

// fail answers with an error.
func (a *answer) fail(err error) {
	code, told := http.StatusInternalServerError, failure{Error: err.Error()}
	var e *requestError
	if errors.As(err, &e) {
		told = failure{Error: e.message, Hint: e.hint}
		if e.code >= 400 && e.code <= 599 {
			code = e.code
		}
	}
	if !a.begun {
		a.Header().Set("Content-Type", "application/json")
	}
	_ = a.json(code, told) // two strings always have JSON
}

// excerpt makes text of a caller fit to be repeated to it.
func excerpt(text string) string {
	const most = 60
	text = clean(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(text)
}
