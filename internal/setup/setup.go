// Package setup provisions boards: it writes the configuration and the key of the
// first board of a group, and copies both to the others.
//
// The two files go from one board to the next through a pipe, as a tar archive, and
// never through a file in between. Existing files are replaced only on request, and a
// file is written completely or not at all.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/setup/keepalived"
)

// The names of the files of a board.
const (
	configName = "topdog.toml"
	keyName    = "key"
)

// UsageError is something that no board and no network could make right: a mistake
// of whoever asked.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Board is what a board shall become.
type Board struct {
	Path    string // of the configuration; the key goes beside it
	Address string // the floating address; "" to have it asked for
	// What else is written into the configuration, if not "".
	Interface, Group, LED string
	// Strict asks for at most one holder at any instant, by the votes of Voters: their ids, which
	// are asked for if there are none.
	Strict bool
	Voters []string
	// Page prints the lines that start the page too. With AskPage a person who is asked for the
	// address is asked for it.
	Page, AskPage bool
	// Force replaces the files that exist, the key too: then every board needs the new one.
	Force bool

	// From is a configuration of keepalived that is converted, if not "", and Instance which of its
	// groups. DryRun shows what would become of it.
	From, Instance string
	DryRun         bool
	converted      *keepalived.Group
}

// Init sets up the first board of a group, and says what it did and what is left to
// do. On a board that is set up already it changes nothing and says the same.
func (b Board) Init(ctx context.Context, in io.Reader, out io.Writer) error {
	return b.initIn(thisNetwork(ctx), in, out)
}

func (b Board) initIn(network network, in io.Reader, out io.Writer) error {
	if err := checkPath(b.Path); err != nil {
		return err
	}
	if err := b.convert(thisMachine()); err != nil {
		return err
	}
	if err := b.check(b.Address); err != nil {
		return UsageError{err}
	}
	if b.DryRun {
		return b.preview(out)
	}
	if !b.Force {
		done, err := b.isSetUp(out)
		if done && err == nil {
			err = b.provideHook(out)
		}
		if done || err != nil {
			return err
		}
	}
	asked := b.Address == ""
	if err := b.chooseAddress(network, in, out); err != nil {
		return err
	}
	if err := b.chooseVoters(network, in, out); err != nil {
		return err
	}
	if err := b.isVoter(network); err != nil {
		return err
	}
	if err := b.choosePage(asked, in, out); err != nil {
		return err
	}
	if err := b.provideHook(out); err != nil {
		return err
	}
	done, err := b.write()
	if err != nil {
		return err
	}
	if err := giveToDaemon(done.keyPath); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s\n", done.configPath)
	if done.keyIsNew {
		fmt.Fprintf(out, "wrote %s (a fresh key, which nobody else can read)\n", done.keyPath)
	} else {
		fmt.Fprintf(out, "kept  %s\n", done.keyPath)
	}
	if b.converted != nil {
		b.explainConversion(out)
	}
	cfg, err := config.Load(done.configPath)
	if err != nil {
		return err
	}
	b.explainTheRest(out, cfg)
	return nil
}

// checkPath wants the configuration to have its name, which the other boards get too.
func checkPath(path string) error {
	if filepath.Base(path) != configName {
		return usage("--config must name a file %s, is %s", configName, path)
	}
	return nil
}

// check finds out whether an address and what else is asked for make a
// configuration, without looking at any file. An address that is still to be asked
// for is "".
func (b Board) check(address string) error {
	// Of RFC 5737, for documentation: nothing else depends on which it is.
	a := config.Address{IP: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
	if address != "" {
		var err error
		if a, err = config.ParseAddress(address); err != nil {
			return fmt.Errorf("the address: %w", err)
		}
	}
	if b.Strict && len(b.Voters) == 0 {
		b.Strict = false // they are asked for later
	}
	return checkText(configName, b.config(a))
}

// isSetUp finds a configuration and a key that are what is asked for. Then there
// is nothing to do but to say what is left to do.
func (b Board) isSetUp(out io.Writer) (bool, error) {
	cfg, err := config.Load(b.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("this board has a configuration already, but it cannot be used (--force replaces it):\n%w", err)
	}
	if differs := b.differences(cfg); differs != nil {
		return false, fmt.Errorf("%s exists and is left as it is, but it has %s; change it there, or use --force to replace it and the key",
			b.Path, strings.Join(differs, " and "))
	}
	if cfg.KeyFile != config.NoKey {
		if err := cfg.ReadKeys(); err != nil {
			return false, err
		}
		if err := giveToDaemon(cfg.KeyFile); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(out, "this board is set up already (%s, %s); nothing was changed\n", b.Path, addresses(cfg))
	b.explainTheRest(out, cfg)
	return true, nil
}

// differences lists what is asked for otherwise than the file has it.
func (b Board) differences(cfg *config.Config) (texts []string) {
	differ := func(key, has, wanted string) {
		texts = append(texts, fmt.Sprintf("%s %s instead of %s", key, has, wanted))
	}
	if b.converted != nil {
		wanted, err := config.Parse(b.Path, b.convertedConfig())
		if err != nil {
			return []string{err.Error()} // check has seen that it is right
		}
		for _, key := range cfg.Changed(wanted) {
			differ(key, cfg.Value(key), wanted.Value(key))
		}
		return texts
	}
	if b.Address != "" {
		wanted, err := config.ParseAddress(b.Address)
		// Without a prefix length, nothing is said about the one that is there.
		same := func(a config.Address) bool {
			return a == wanted || a.IP == wanted.IP && wanted.Bits == config.FromSubnet
		}
		if err != nil || !slices.ContainsFunc(cfg.Addresses, same) {
			differ("the address", addresses(cfg), b.Address)
		}
	}
	if b.Interface != "" && b.Interface != cfg.Interface {
		differ("the interface", strconv.Quote(cfg.Interface), strconv.Quote(b.Interface))
	}
	if b.Group != "" && b.Group != cfg.Group {
		differ("the group", strconv.Quote(cfg.Group), strconv.Quote(b.Group))
	}
	if strict := isStrict(cfg); b.Strict && !strict {
		differ("the algorithm", strconv.Quote(cfg.Algorithm.String()), strconv.Quote(strictAlgorithm))
	} else if has := voters(cfg); b.Voters != nil && !slices.Equal(has, b.Voters) {
		differ("the voters", strings.Join(has, ", "), strings.Join(b.Voters, ", "))
	}
	if b.LED != "" {
		if wanted, err := gpio.ParseSpec(b.LED); err != nil || wanted != cfg.LED {
			differ("the LED", strconv.Quote(cfg.LED.String()), strconv.Quote(b.LED))
		}
	}
	return texts
}

// strictAlgorithm is what the algorithm with votes is called in the configuration.
const strictAlgorithm = "strict"

func isStrict(cfg *config.Config) bool { return cfg.Algorithm.String() == strictAlgorithm }

func voters(cfg *config.Config) []string {
	texts := make([]string, len(cfg.Voters))
	for i, id := range cfg.Voters {
		texts[i] = id.String()
	}
	return texts
}

func addresses(cfg *config.Config) string {
	texts := make([]string, len(cfg.Addresses))
	for i, a := range cfg.Addresses {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

// explainTheRest says what is left to do, on this board and on the others.
func (b Board) explainTheRest(out io.Writer, cfg *config.Config) {
	start := startLine
	if b.Page {
		start = startBothLine
	}
	fmt.Fprintf(out, "\nStart it:\n\n    %s\n", start)
	fmt.Fprintf(out, "\nEvery other board, once topdog is installed there, is set up from this one by\n\n    %s\n", copyLine(b.Path, start))
	if isStrict(cfg) {
		fmt.Fprintf(out, "\nA witness, which votes and never has the address, by\n\n    %s\n", copyLine(b.Path, startWitnessLine))
	}
	fmt.Fprintf(out, "\n(USER@BOARD is for you to fill in. The key passes through the pipe only.)\n")
	b.explainPage(out, cfg)
}

// What starts a board, a witness, and the page of a board.
const (
	startLine        = "sudo systemctl enable --now topdog"
	startWitnessLine = "sudo systemctl enable --now topdog-witness"
	startPageLine    = "sudo systemctl enable --now topdog-page"
	startBothLine    = startLine + " topdog-page"
)

// copyLine is the shell command that sets up another board and starts it, run on this one.
func copyLine(path, start string) string {
	option := ""
	if path != config.DefaultPath {
		option = " --config " + config.ShellQuote(path)
	}
	return "sudo topdog init --export" + option + " | ssh USER@BOARD " +
		config.ShellQuote("sudo topdog init --import"+option+" && "+start)
}

// isTerminal reports whether a person is at the other end.
func isTerminal(end any) bool {
	f, ok := end.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
