// Package setup provisions boards: it writes the configuration and the key of the
// first board of a group, and copies both to the others.
//
// The two files go from one board to the next through a pipe, as JSON, and
// never through a file in between. Existing files are replaced only on request, and a
// file is written completely or not at all.
package setup

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"topdog/internal/config"
	"topdog/internal/setup/keepalived"
)

// UsageError is a mistake in what was asked for. It would be one on any board, and in any network.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Board is what a board shall become.
type Board struct {
	Path      string   // of the configuration; the key goes beside it
	Addresses []string // the floating addresses; none to ask for them
	// What else is written into the configuration, if not "". Interfaces are that of the addresses and that of a second path.
	Group, LED string
	Interfaces []string
	// Strict asks for at most one holder at any instant, by the votes of Voters: their ids.
	Strict bool
	Voters []string
	Page   bool // print the lines that start the page too
	// Force replaces the files that exist, the key too: then every board needs the new one.
	Force bool

	// From is a configuration of keepalived to convert, if not "", and Instance the only one of its instances that is meant, if
	// not "". DryRun only shows what would be written.
	From, Instance string
	DryRun         bool
	converted      *keepalived.Converted
	foundOn        string // the interface that the address was found to belong to, if none is named
	second         string // an interface for a second path, which the configuration mentions; "" if there is none
}

// Init sets up the first board of a group, and says what it did and what is left to
// do. On a board that is set up already it changes nothing and says the same.
func (b Board) Init(ctx context.Context, in io.Reader, out io.Writer) error {
	return b.initIn(thisNetwork(ctx), in, out)
}

func (b Board) initIn(network network, in io.Reader, out io.Writer) error {
	if err := b.findPath(); err != nil {
		return err
	}
	if err := b.needVoters(); err != nil {
		return err
	}
	if b.From != "" {
		if err := b.convert(hasUnit); err != nil {
			return err
		}
	}
	if err := b.check(); err != nil {
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
	if err := b.chooseAddress(network, in, out); err != nil {
		return err
	}
	if err := b.isVoter(network); err != nil {
		return err
	}
	b.findSecond(network)
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
	fmt.Fprintf(out, "wrote %s\n", b.Path)
	if done.keyIsNew {
		fmt.Fprintf(out, "wrote %s (a fresh key, which nobody else can read)\n", done.keyPath)
	} else {
		fmt.Fprintf(out, "kept  %s\n", done.keyPath)
	}
	b.explainConversion(out)
	groups, err := config.LoadGroups(b.Path)
	if err != nil {
		return err
	}
	b.explainTheRest(out, groups.First())
	return nil
}

// findPath makes sure that the configuration has its usual name, which it gets on the other boards too, and makes its path
// absolute.
func (b *Board) findPath() (err error) {
	if filepath.Base(b.Path) != configName {
		return usage("--config must name a file %s, is %s", configName, b.Path)
	}
	if b.Path, err = filepath.Abs(b.Path); err != nil {
		err = fmt.Errorf("make the path of the configuration absolute: %w", err)
	}
	return err
}

// needVoters refuses Strict without voters, unless this board is set up with some: then there is nothing to write.
func (b *Board) needVoters() error {
	if !b.Strict || b.Voters != nil {
		return nil
	}
	if groups, exists, err := present("configuration", b.Path, config.LoadGroups); exists && err == nil && isStrict(groups.First()) && !b.Force {
		b.Strict = false
		return nil
	}
	return usage("which boards vote? Add --voters with the own addresses of three boards, or of two and a witness, " +
		"which never change: --voters 192.168.1.11,192.168.1.12,192.168.1.13")
}

// check finds out whether what is asked for makes a configuration, without looking at any file.
func (b Board) check() error {
	for _, address := range b.Addresses {
		if _, err := config.ParseAddress(address); err != nil {
			return fmt.Errorf("the address: %w", config.WithHint(err, "write an unused address of the network, such as 192.168.1.250"))
		}
	}
	return checkText(configName, b.config())
}

// isSetUp reports whether the board has the configuration and the key that are asked
// for. If so, it says what is left to do, on this board and on the others.
func (b Board) isSetUp(out io.Writer) (bool, error) {
	groups, exists, err := present("configuration", b.Path, config.LoadGroups)
	if !exists || err != nil {
		return false, err
	}
	cfg, err := b.askedFor(groups)
	if err != nil {
		return false, err
	}
	if cfg.KeyFile != config.NoKey {
		if err := groups.ReadKeys(); err != nil {
			return false, err
		}
		if err := giveToDaemon(cfg.KeyFile); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(out, "this board is set up already (%s, %s); nothing was changed\n", b.Path, joined(addressesOf(groups)))
	b.explainTheRest(out, cfg)
	return true, nil
}

// askedFor returns the group of the file that is asked for, the first one if all are. The error says how the file differs from
// what is asked for.
func (b Board) askedFor(groups config.Groups) (*config.Config, error) {
	wanted, err := config.ParseGroups(b.Path, b.config())
	if err != nil {
		return nil, err
	}
	var differs []string
	switch {
	case len(wanted) == 1:
		for _, cfg := range groups {
			if differs = b.differences(cfg, wanted.First()); differs == nil {
				return cfg, nil
			}
		}
		if len(groups) > 1 {
			return nil, fmt.Errorf("%s exists and is left as it is: each [[group]] in it is a group, and none of %s is as asked for; "+
				"edit the file, or use --force to replace it, all its groups and the key", b.Path, config.QuoteAll(groups.Names()))
		}
	case !slices.Equal(groups.Names(), wanted.Names()):
		differs = []string{fmt.Sprintf("the groups %s instead of %s", config.QuoteAll(groups.Names()), config.QuoteAll(wanted.Names()))}
	default:
		for i, cfg := range groups {
			for _, text := range b.differences(cfg, wanted[i]) {
				differs = append(differs, text+" in the group "+config.Quote(cfg.Group))
			}
		}
	}
	if differs != nil {
		return nil, fmt.Errorf("%s exists and is left as it is, but it has %s; change it there, or use --force to replace it and the key",
			b.Path, strings.Join(differs, " and "))
	}
	return groups.First(), nil
}

// differences lists the keys whose values in a group of the file are not those that are wanted. A conversion asks for all keys;
// otherwise the keys that are not asked for may differ.
func (b Board) differences(cfg, wanted *config.Config) (texts []string) {
	for _, key := range cfg.Changed(wanted) {
		asked := wanted.Sets(key) && key != "key_file"
		if key == "address" {
			asked = b.Addresses != nil && slices.ContainsFunc(wanted.Addresses, func(wants config.Address) bool {
				return !slices.ContainsFunc(cfg.Addresses, func(has config.Address) bool {
					// Without a prefix length, nothing is said about the one that is there.
					return has == wants || has.IP == wants.IP && wants.Bits == config.FromSubnet
				})
			})
		}
		has, wants := cfg.Value(key), wanted.Value(key)
		if has == wants { // checks are told by what they look at
			wants = "the same with other settings"
		}
		if asked || b.converted != nil {
			texts = append(texts, fmt.Sprintf("%s = %s instead of %s", key, has, wants))
		}
	}
	return texts
}

// strictAlgorithm is the algorithm with votes, as the configuration names it.
const strictAlgorithm = "strict"

func isStrict(cfg *config.Config) bool { return cfg.Algorithm.String() == strictAlgorithm }

// addressesOf returns the floating addresses of all groups.
func addressesOf(groups config.Groups) (all []config.Address) {
	for _, cfg := range groups {
		all = append(all, cfg.Addresses...)
	}
	return all
}

// joined lists addresses.
func joined(all []config.Address) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, ", ")
}

// The lines that start a board, a witness, and the page of a board.
const (
	startLine        = "sudo systemctl enable --now topdog"
	startWitnessLine = "sudo systemctl enable --now topdog-witness"
	startPageLine    = "sudo systemctl enable --now topdog-page"
	startBothLine    = startLine + " topdog-page"
)

// explainTheRest says what is left to do, on this board and on the others.
func (b Board) explainTheRest(out io.Writer, cfg *config.Config) {
	start := startLine
	if b.Page {
		start = startBothLine
	}
	fmt.Fprintf(out, "\nStart it:\n\n    %s\n", start)
	fmt.Fprintf(out, "\nEvery other board, once topdog is installed there, is set up from this one by\n\n    %s\n",
		copyLine(b.Path, start))
	if isStrict(cfg) {
		fmt.Fprintf(out, "\nA witness, which votes and never has the address, by\n\n    %s\n",
			copyLine(b.Path, startWitnessLine))
	}
	fmt.Fprintf(out, "\n(USER@BOARD is for you to fill in. The key passes through the pipe only.)\n")
	if b.Page {
		fmt.Fprintf(out, "\nThen a browser shows the group at %s\n", pageURL(cfg))
	} else {
		fmt.Fprintf(out, "\nTo show the group in a browser, at %s, each board that may have the address needs\n\n    %s\n",
			pageURL(cfg), startPageLine)
	}
}

// pageURL is where the page is once it runs: at the floating address, unless it listens elsewhere.
func pageURL(cfg *config.Config) string {
	at, listen := cfg.FirstIPv4(), cfg.PageListen
	if listen.Addr.IsValid() && !listen.Addr.IsUnspecified() {
		at = listen.Addr
	}
	return "http://" + netip.AddrPortFrom(at, listen.Port).String() + "/"
}

// copyLine is the shell command on this board that sets up another board and starts it.
func copyLine(path, start string) string {
	option := ""
	if path != config.DefaultPath {
		option = " --config " + config.ShellQuote(path)
	}
	return "sudo topdog init --export" + option + " | ssh USER@BOARD " +
		config.ShellQuote("sudo topdog init --import"+option+" && "+start)
}
