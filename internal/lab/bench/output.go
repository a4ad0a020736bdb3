package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"topdog/internal/lab/bench/report"
)

// load reads what --json has written.
func load(path string) (*report.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := report.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// publish writes the figures in every form that was asked for. The JSON comes
// first: all else can be made of it.
func (o options) publish(r *report.Report) error {
	var errs []error
	if o.json != "" {
		errs = append(errs, write(o.json, func(w io.Writer) error { return report.JSON(w, r) }))
	}
	if o.report != "" {
		errs = append(errs, write(o.report, func(w io.Writer) error { return report.Text(w, r) }))
	}
	if o.page != "" {
		errs = append(errs, insert(o.page, r))
	}
	if o.svg != "" {
		errs = append(errs, os.MkdirAll(o.svg, 0o755))
		for _, chart := range report.Charts() {
			path := filepath.Join(o.svg, "bench-"+chart+".svg")
			errs = append(errs, write(path, func(w io.Writer) error { return report.SVG(w, r, chart) }))
		}
	}
	return errors.Join(errs...)
}

// insert puts the tables into a page of docs/, in the place of those that it has.
func insert(path string, r *report.Report) error {
	page, err := os.ReadFile(path)
	if err == nil {
		page, err = report.Insert(page, r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, page, 0o644)
}

// write writes a file, or the standard output for "-".
func write(path string, content func(io.Writer) error) error {
	if path == "-" {
		return content(os.Stdout)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}
