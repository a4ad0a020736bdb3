package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"topdog/internal/config"
	"topdog/internal/setup/keepalived"
)

// hookName is the hook that calls keepalived's notify scripts, below the directory of the configuration.
const hookName = "hooks.d/keepalived"

// convert reads keepalived's configuration in the place of questions. What is asked for otherwise stays.
func (b *Board) convert(m keepalived.Machine) error {
	if b.From == "" {
		return nil
	}
	group, err := keepalived.Convert(b.From, b.Instance, m)
	var choice *keepalived.ChoiceError
	if errors.As(err, &choice) {
		return usage("%w (--instance NAME)", err)
	}
	if err != nil {
		return err
	}
	b.converted = group
	b.Address = group.Addresses[0]
	if b.Interface == "" {
		b.Interface = group.Interface
	}
	if b.Group == "" {
		b.Group = group.Name
	}
	return nil
}

// thisMachine is the board that a configuration of keepalived is converted on.
func thisMachine() keepalived.Machine {
	name, _ := os.Hostname()
	name, _, _ = strings.Cut(name, ".")
	return keepalived.Machine{
		Name: name,
		ReadFile: func(path string, most int64) ([]byte, error) {
			data, _, err := config.ReadSmall(path, most)
			return data, err
		},
		Glob: filepath.Glob,
		HasUnit: func(name string) bool {
			return inDirectories(name, "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system") != ""
		},
		Program: func(name string) string {
			return inDirectories(name, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
		},
	}
}

// inDirectories returns the path of a file in the first of the directories that has it, or "".
func inDirectories(name string, directories ...string) string {
	for _, dir := range directories {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// convertedConfig is the file of a board that was converted.
func (b Board) convertedConfig() []byte {
	var text strings.Builder
	line := func(key, value string) { text.WriteString(key + " = " + value + "\n") }
	text.WriteString("# topdog: one address that always answers. Converted from keepalived's configuration;\n" +
		"# docs/keepalived.md says what became of each line, and docs/config.md describes every key.\n\n")
	if address := b.converted.Addresses; len(address) == 1 {
		line("address", config.Quote(address[0]))
	} else {
		line("address", list(address))
	}
	b.writeCommon(&text)
	text.WriteString("\n# These are this board's own: write what the other boards have into their files.\n")
	if b.converted.Priority != 0 {
		line("priority", strconv.Itoa(b.converted.Priority))
	} else {
		text.WriteString("#priority = 100\n")
	}
	line("preempt", strconv.FormatBool(b.converted.Preempt))
	if b.converted.PreemptDelay != 0 {
		line("preempt_delay", config.Quote(b.converted.PreemptDelay.String()))
	}
	if len(b.converted.Peers) > 0 {
		line("peers", list(b.converted.Peers))
	}
	if b.LED != "" {
		line("led", config.Quote(b.LED))
	}
	for _, c := range b.converted.Checks {
		text.WriteString("\n" + c.TOML())
	}
	return []byte(text.String())
}

// list writes texts as a list of TOML.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = config.Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// hookPath is where the hook that calls the notify scripts belongs; "" if there are none.
func (b Board) hookPath() string {
	if b.converted == nil || b.converted.Hook == nil {
		return ""
	}
	return filepath.Join(filepath.Dir(b.Path), hookName)
}

// provideHook writes the hook that calls the notify scripts. The same one is kept, and another one only
// replaced by Force.
func (b Board) provideHook(out io.Writer) error {
	if b.hookPath() == "" {
		return nil
	}
	path, err := filepath.Abs(b.hookPath())
	if err != nil {
		return fmt.Errorf("make the path of %s absolute: %w", b.hookPath(), err)
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
	text := b.config(config.Address{})
	if err := checkText(b.Path, text); err != nil {
		return err
	}
	fmt.Fprintf(out, "--- %s\n%s", b.Path, text)
	if path := b.hookPath(); path != "" {
		fmt.Fprintf(out, "\n--- %s\n%s", path, b.converted.Hook)
	}
	b.explainConversion(out)
	return nil
}

// explainConversion says what was not converted.
func (b Board) explainConversion(out io.Writer) {
	for _, part := range []struct {
		title string
		act   bool
	}{
		{"Look at these lines: they are not converted, or mean something else now", true},
		{"Nothing to do for these, which topdog does by itself or does without", false},
	} {
		notes := slices.DeleteFunc(slices.Clone(b.converted.Notes), func(n keepalived.Note) bool { return n.Act != part.act })
		if len(notes) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s:\n\n", part.title)
		for i, n := range notes {
			fmt.Fprintf(out, "  %v: %s\n", n.Place, n.Keyword)
			if i+1 == len(notes) || notes[i+1].Text != n.Text { // else it is said below the next line
				fmt.Fprintf(out, "      %s\n", n.Text)
			}
		}
	}
	fmt.Fprintf(out, "\nStart topdog on the board that has the address now, and then on the others. When `topdog status` shows that it leads\n"+
		"there, stop keepalived, and on that board last:\n\n    sudo systemctl disable --now keepalived\n")
	if b.hookPath() != "" {
		fmt.Fprintf(out, "\nThe notify scripts are run by this, as the user topdog (systemctl edit topdog-hooks can set User=root), on every board\n"+
			"that has them and a copy of %s:\n\n    sudo systemctl enable --now topdog-hooks\n", b.hookPath())
	}
}
