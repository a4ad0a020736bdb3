// Package manual writes topdog's manual pages from texts that exist already, so that
// no text stands twice: topdog(1) and a page for each of its commands from the program's
// own help and from docs/operations.md, topdog.toml(5) from the annotated configuration.
//
//	manual -program PROGRAM -operations FILE -version TEXT -date YYYY-MM-DD DIRECTORY
//
// The pages are in man1 and man5 below the directory. With --lab the program is topdog-lab, which has one page.
//
// The package is used when a package of topdog is made, and is no part of the daemon.
// The generator of the command-line library would have to be linked into the daemon.
package manual

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"topdog/internal/config"
)

// Main is the command scripts/packaging/manual. It ends the process if something is wrong.
func Main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run() error {
	program := flag.String("program", "", "the `program`, which is asked for its help")
	lab := flag.Bool("lab", false, "the program is topdog-lab")
	operations := flag.String("operations", "docs/operations.md", "the `file` with the table of exit statuses")
	version := flag.String("version", "", "the `version` for the foot of the pages")
	date := flag.String("date", "", "the `date` for the foot of the pages")
	flag.Parse()
	if *program == "" || flag.NArg() != 1 {
		flag.Usage()
		return errors.New("which program, and into which directory?")
	}
	ask := func(command ...string) (string, error) {
		out, err := exec.Command(*program, append(command, "--help")...).Output()
		if err != nil {
			return "", fmt.Errorf("ask %s %v for its help: %w", *program, command, err)
		}
		return string(out), nil
	}
	pages, err := pagesOf(ask, *lab, *operations, *version, *date)
	if err != nil {
		return err
	}
	for name, text := range pages {
		if err := write(filepath.Join(flag.Arg(0), name), text); err != nil {
			return err
		}
	}
	return nil
}

// pagesOf returns the pages of topdog or of topdog-lab by their names.
func pagesOf(ask asker, lab bool, operations, version, date string) (map[string]string, error) {
	if lab {
		page, err := labPage(foot{version: version, date: date}, ask)
		return map[string]string{"man1/topdog-lab.1": page}, err
	}
	table, err := os.ReadFile(operations)
	if err != nil {
		return nil, err
	}
	pages, err := Pages(ask, string(table), version, date)
	if err != nil {
		return nil, fmt.Errorf("%s or the help: %w", operations, err)
	}
	return pages, nil
}

// Pages returns the pages of topdog by their names, as "man1/topdog.1". ask returns the help of a command, operations is
// docs/operations.md, and version and date are for the foot of the pages.
func Pages(ask func(command ...string) (string, error), operations, version, date string) (map[string]string, error) {
	foot := foot{version: version, date: date}
	statuses, err := exitStatuses(operations)
	if err != nil {
		return nil, err
	}
	commands, err := commandPages(foot, ask, statuses)
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	for name, text := range commands {
		pages["man1/"+name+".1"] = text
	}
	if pages["man5/topdog.toml.5"], err = configPage(foot, string(config.Reference())); err != nil {
		return nil, fmt.Errorf("the annotated configuration: %w", err)
	}
	return pages, nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
