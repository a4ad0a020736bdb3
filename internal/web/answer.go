package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error refuses a request.
type Error struct {
	Code    int    // the HTTP status
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
}

func (e *Error) Error() string { return e.Message }

// failure is what a client is told.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// WriteJSON answers with a value, as one line.
func WriteJSON(w http.ResponseWriter, code int, v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no browser takes it for HTML: see protect
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("the answer has no JSON: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(line.Bytes()) // a client that has gone is no failure
	return nil
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	code, told := http.StatusInternalServerError, failure{Error: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		code, told.Hint = e.Code, e.Hint
	}
	_ = WriteJSON(w, code, told) // two strings always have JSON
}
