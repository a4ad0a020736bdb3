package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxSize is the most that Read takes, in bytes. A thousand runs are some 200 kB.
const maxSize = 16 << 20

// JSON writes the report for programs. Times are in nanoseconds, sizes in bytes. What
// took an hour to measure is not thrown away because of one impossible figure: the report
// is written in any case, and the error is then that of Check.
func JSON(w io.Writer, r *Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return r.Check()
}

// Read reads what JSON has written. It refuses what it does not know, and what
// cannot have been measured.
func Read(from io.Reader) (*Report, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("reading a report: it is longer than %d bytes; no bench writes that much", maxSize)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	r := new(Report)
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("reading a report: %s: %w", place(text, d.InputOffset(), err), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("reading a report: %s: something follows the report's last brace", position(text, d.InputOffset()))
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// place says where an error of the decoder is. Errors that do not know have
// happened within the value that begins where the decoder stands.
func place(text []byte, stands int64, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return position(text, syntax.Offset)
	case errors.As(err, &kind):
		return position(text, kind.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return position(text, int64(len(text)))
	}
	if at, ok := unknown(text, err); ok {
		return position(text, at)
	}
	return position(text, stands)
}

// unknown finds the field that the decoder does not know. Its error names the field
// and not the place, so this is where the name is first used as one.
func unknown(text []byte, err error) (int64, bool) {
	_, name, ok := bytes.Cut([]byte(err.Error()), []byte("unknown field "))
	if !ok {
		return 0, false
	}
	for from := 0; ; {
		i := bytes.Index(text[from:], name)
		if i < 0 {
			return 0, false
		}
		from += i + len(name)
		if rest := bytes.TrimLeft(text[from:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
			return int64(from), true
		}
	}
}

// position turns an offset into a line and a column, both counted from 1, of the
// last byte before it.
func position(text []byte, offset int64) string {
	before := text[:max(0, min(offset-1, int64(len(text))))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
