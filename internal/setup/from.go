package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"topdog/internal/config"
	"topdog/internal/setup/keepalived"
)

// convert takes the answers to init's questions from keepalived's configuration. An interface that the caller has named comes
// first, and so does the name of an only group.
func (b *Board) convert(hasUnit func(name string) bool) error {
	const most = 1 << 20
	text, _, err := config.ReadSmall(b.From, most)
	if err != nil {
		return fmt.Errorf("read keepalived's configuration: %w", err)
	}
	return b.convertText(text, hasUnit)
}

func (b *Board) convertText(text []byte, hasUnit func(name string) bool) (err error) {
	b.converted, err = keepalived.Convert(b.From, text, b.Instance, hasUnit)
	var choice *keepalived.ChoiceError
	switch {
	case errors.As(err, &choice):
		return usage("%w (--instance NAME)", err)
	case err != nil:
		return err
	}
	groups := b.converted.Groups
	if len(groups) > 1 && b.Group != "" {
		return usage("%s has several groups, each with a name of its own: leave out --group, or choose one of them with --instance NAME", b.From)
	}
	b.Addresses = nil
	for _, g := range groups {
		b.Addresses = append(b.Addresses, g.Addresses...)
	}
	if len(groups) == 1 {
		if name := groups[0].Interface; name != "" && len(b.Interfaces) == 0 {
			b.Interfaces = []string{name}
		}
		b.Group = cmp.Or(b.Group, groups[0].Name)
	}
	return nil
}

// hasUnit reports whether systemd has a file for a unit on this board.
func hasUnit(name string) bool {
	directories := []string{"/etc/systemd/system", "/run/systemd/system",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
	return slices.ContainsFunc(directories, func(directory string) bool {
		info, err := os.Stat(filepath.Join(directory, name))
		return err == nil && info.Mode().IsRegular()
	})
}

// convertedConfig is the configuration of a board that was converted.
func (b Board) convertedConfig() []byte {
	var text strings.Builder
	text.WriteString("# topdog: one address that always answers. Converted from keepalived's configuration;\n" +
		"# docs/keepalived.md says what became of each line, and docs/config.md describes every key.\n")
	const own = "\n# These are this board's own: write what the other boards have into their files.\n"
	light := ""
	if b.LED != "" {
		light = "led = " + config.Quote(b.LED) + "\n"
	}
	if groups := b.converted.Groups; len(groups) == 1 {
		text.WriteString("\n")
		writeAddress(&text, b.Addresses)
		b.writeCommon(&text)
		text.WriteString(own + groups[0].Own + light)
	} else {
		var common strings.Builder
		b.writeCommon(&common)
		if common.WriteString(light); common.Len() > 0 {
			text.WriteString("\n" + common.String())
		}
		for _, g := range groups {
			fmt.Fprintf(&text, "\n# %s\n[[group]]\nname = %s\n", g.Origin, config.Quote(g.Name))
			writeAddress(&text, g.Addresses)
			if len(b.Interfaces) == 0 && g.Interface != "" {
				writeInterfaces(&text, []string{g.Interface})
			}
			text.WriteString(own + g.Own + g.Checks)
		}
	}
	text.WriteString(b.converted.Checks)
	return []byte(text.String())
}

// hookPath is where the hook belongs that calls keepalived's notify scripts; "" if there are none.
func (b Board) hookPath() string {
	if b.converted == nil || b.converted.Hook == nil {
		return ""
	}
	return filepath.Join(filepath.Dir(b.Path), hookName)
}

// provideHook writes the hook that calls the notify scripts. It keeps the same hook, and replaces another one only with
// Force.
func (b Board) provideHook(out io.Writer) error {
	path := b.hookPath()
	if path == "" {
		return nil
	}
	present, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(present, b.converted.Hook):
		fmt.Fprintf(out, "kept  %s\n", path)
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for a hook in %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory for hooks: %w", err)
	}
	if err := writeFile(path, b.converted.Hook, 0o755, b.Force); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s\n", path)
	return nil
}

// preview shows what a conversion would write, and changes nothing.
func (b Board) preview(out io.Writer) error {
	fmt.Fprintf(out, "--- %s\n%s", b.Path, b.config())
	if path := b.hookPath(); path != "" {
		fmt.Fprintf(out, "\n--- %s\n%s", path, b.converted.Hook)
	}
	b.explainConversion(out)
	return nil
}

// explainConversion says what was not converted, and how keepalived is stopped.
func (b Board) explainConversion(out io.Writer) {
	if b.converted == nil {
		return
	}
	b.explainNotes(out, true, "Look at these lines: they are not converted, or mean something else now")
	b.explainNotes(out, false, "Nothing to do for these, which topdog does by itself or does without")
	start := "Start topdog on the board that has the address now, and then on the others. When `topdog status` shows that it leads\n" +
		"there, stop keepalived, and on that board last:"
	if len(b.converted.Groups) > 1 {
		start = "Start topdog on the boards that have the addresses now, and then on the others. When `topdog status` shows for each\n" +
			"group that the board leads that has its address, stop keepalived, and on those boards last:"
	}
	fmt.Fprintf(out, "\n%s\n\n    sudo systemctl disable --now keepalived\n", start)
	if path := b.hookPath(); path != "" {
		fmt.Fprintf(out, "\nThe notify scripts are run by this, as the user topdog (systemctl edit topdog-hooks can set User=root), on every board\n"+
			"that has them and a copy of %s:\n\n    sudo systemctl enable --now topdog-hooks\n", path)
	}
}

// explainNotes lists the notes that somebody has to act on, or the others.
func (b Board) explainNotes(out io.Writer, act bool, title string) {
	notes := slices.DeleteFunc(slices.Clone(b.converted.Notes), func(n keepalived.Note) bool { return n.Act != act })
	if len(notes) > 0 {
		fmt.Fprintf(out, "\n%s:\n\n", title)
	}
	for i, n := range notes {
		fmt.Fprintf(out, "  %v: %s\n", n.Place, n.Keyword)
		if i+1 == len(notes) || notes[i+1].Text != n.Text { // else the text stands below the next line
			fmt.Fprintf(out, "      %s\n", n.Text)
		}
	}
}
