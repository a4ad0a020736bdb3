package attack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// report is all that was measured.
type report struct {
	Processors int      `json:"processors"`
	Systems    []system `json:"systems"`
	Places     []place  `json:"places"`
	Attacks    []attack `json:"attacks"`
	Results    []Result `json:"results"`
}

// add puts another report to this one. What both have is of the later one.
func (r *report) add(o *report) {
	r.Processors = o.Processors
	r.Systems = merge(r.Systems, o.Systems, system.String)
	r.Places = merge(r.Places, o.Places, place.String)
	r.Attacks = merge(r.Attacks, o.Attacks, attack.String)
	r.Results = merge(r.Results, o.Results, func(x Result) string { return x.System + " " + x.Place + " " + x.Attack })
}

func merge[T any](old, fresh []T, key func(T) string) []T {
	for _, one := range fresh {
		i := slices.IndexFunc(old, func(o T) bool { return key(o) == key(one) })
		if i < 0 {
			old = append(old, one)
		} else {
			old[i] = one
		}
	}
	return old
}

// load reads what --json has written, and puts it together.
func load(paths ...string) (*report, error) {
	all := &report{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var one report
		from := json.NewDecoder(bytes.NewReader(text))
		from.DisallowUnknownFields() // a file of an older program has other figures
		if err := from.Decode(&one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.add(&one)
	}
	return all, nil
}

// publish writes the figures in every form that was asked for.
func (r *report) publish(o options, out io.Writer) error {
	err := r.write(out)
	if o.json != "" {
		err = errors.Join(err, r.save(o.json))
	}
	if o.page != "" {
		err = errors.Join(err, r.insert(o.page))
	}
	return err
}

func (r *report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
