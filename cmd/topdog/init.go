package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"topdog/gpio"
	"topdog/internal/config"
)

func initCommand() *cobra.Command {
	var in initialisation
	c := &cobra.Command{
		Use:   "init [ADDRESS]",
		Short: "Set up the first board of a group, or another one like it",
		Long: `Write the configuration of the first board of a group, and a fresh 256-bit key
that nobody else can read. ADDRESS is the floating address: a free one of your
LAN, outside the range that your router hands out. On a terminal topdog asks
for it.

The other boards get the same two files. The line for that, which this command
prints, runs it once more on both sides: with --export it writes configuration
and key to a pipe, with --import it reads them.

Nothing that exists is replaced, unless you say --force. On a board that is set
up already the command changes nothing and prints the line again.`,
		Example: "  sudo topdog init\n  sudo topdog init 192.168.1.250 --led GPIO17",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in.path, _ = c.Flags().GetString("config")
			return withSudo(in.run(c, args))
		},
	}
	flags := c.Flags()
	flags.StringVar(&in.address, "address", "", "the floating `address`, as an alternative to the argument")
	flags.StringVar(&in.options.Interface, "interface", "", "the `name` of the interface (default: each board finds the one whose subnet contains the address)")
	flags.StringVar(&in.options.Group, "group", "", "the `name` of the group, if there are several on one LAN")
	flags.StringVar(&in.options.LED, "led", "", "the `light`: ACT, GPIO17, GPIO17:low (lit when low), none (default: ACT)")
	flags.BoolVar(&in.options.Force, "force", false, "replace an existing configuration and key")
	flags.BoolVar(&in.export, "export", false, "write configuration and key to standard output, for --import")
	flags.BoolVar(&in.imports, "import", false, "read configuration and key from standard input")
	return c
}

// initialisation is one run of the command.
type initialisation struct {
	path            string // of the configuration
	address         string
	options         config.InitOptions
	export, imports bool
}

func (in *initialisation) run(c *cobra.Command, args []string) error {
	if err := in.check(args); err != nil {
		return err
	}
	switch {
	case in.export:
		return in.exportTo(c.OutOrStdout())
	case in.imports:
		return in.importFrom(c.InOrStdin(), c.OutOrStdout())
	}
	if !in.options.Force {
		done, err := in.isSetUp(c.OutOrStdout())
		if done || err != nil {
			return err
		}
	}
	return in.setUp(c)
}

// check refuses command lines that contradict themselves, or that no board and no
// network could make right.
func (in *initialisation) check(args []string) error {
	if filepath.Base(in.path) != filepath.Base(config.DefaultPath) {
		return usageError{fmt.Errorf("--config must name a file %s, is %s", filepath.Base(config.DefaultPath), in.path)}
	}
	if len(args) == 1 {
		if in.address != "" && in.address != args[0] {
			return usageError{fmt.Errorf("two addresses: %s and --address %s", args[0], in.address)}
		}
		in.address = args[0]
	}
	pipes := 0
	for _, set := range []bool{in.export, in.imports} {
		if set {
			pipes++
		}
	}
	o := in.options
	switch {
	case pipes == 2:
		return usageError{errors.New("--export is for the board that has the key, --import for the one that gets it")}
	case pipes == 1 && (in.address != "" || o.Interface != "" || o.Group != "" || o.LED != ""):
		return usageError{errors.New("with --export and --import the configuration is the one of the first board: leave out the address and the other options")}
	case in.export && o.Force:
		return usageError{errors.New("--export replaces nothing: --force belongs to --import")}
	case pipes > 0:
		return nil
	}
	if err := o.Check(in.address); err != nil {
		return usageError{err}
	}
	return nil
}

// setUp makes the two files.
func (in *initialisation) setUp(c *cobra.Command) error {
	out := c.OutOrStdout()
	network := thisNetwork(c.Context())
	if in.address == "" {
		if !term.IsTerminal(int(os.Stdin.Fd())) {
			return usageError{errors.New("which address shall the boards keep? For example: topdog init 192.168.1.250")}
		}
		subnet, free := network.suggest()
		address, err := ask(os.Stdin, out, subnet, free, func(address string) error { return in.place(out, network, address) })
		if err != nil {
			return err
		}
		in.address = address
	} else if err := in.place(out, network, in.address); err != nil {
		return err
	}
	done, err := config.Init(filepath.Dir(in.path), in.address, in.options)
	if err != nil {
		return err
	}
	if err := giveToDaemon(done.KeyPath); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s\n", done.ConfigPath)
	if done.KeyIsNew {
		fmt.Fprintf(out, "wrote %s (a fresh key, which nobody else can read)\n", done.KeyPath)
	} else if done.KeyPath != "" {
		fmt.Fprintf(out, "kept  %s\n", done.KeyPath)
	}
	in.explainTheRest(out)
	return nil
}

// place finds the interface of the address, and says who has it now. Whoever
// names the interface knows better, for instance on a board without its network.
func (in *initialisation) place(out io.Writer, network network, text string) error {
	if err := in.options.Check(text); err != nil {
		return err
	}
	if in.options.Interface != "" {
		return nil
	}
	parsed, err := config.ParseAddress(text)
	if err != nil {
		return fmt.Errorf("the address: %w", err)
	}
	address := parsed.IP
	name, subnet, err := network.find(address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is in the network of %s (%s)\n", address, name, subnet)
	switch owner, known := network.owner(name, address); {
	case !known: // It could not be asked; then nothing is claimed.
	case owner == "":
		fmt.Fprintf(out, "nobody has it at the moment\n")
	default:
		fmt.Fprintf(out, "note: %s has it at the moment. If that is not a board of this group, choose another\n"+
			"address: topdog takes none that somebody else has.\n", owner)
	}
	return nil
}

// isSetUp finds a configuration and a key that are what is asked for. Then there
// is nothing to do but to print the line.
func (in *initialisation) isSetUp(out io.Writer) (bool, error) {
	cfg, err := config.Load(in.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("this board has a configuration already, but it cannot be used (--force replaces it):\n%w", err)
	}
	if differs := in.differences(cfg); differs != nil {
		return false, fmt.Errorf("%s exists and is left as it is, but it has %s; change it there, or use --force to replace it and the key",
			in.path, strings.Join(differs, " and "))
	}
	if cfg.KeyFile != config.NoKey {
		if _, err := config.LoadKey(cfg.KeyFile); err != nil {
			return false, err
		}
		if err := giveToDaemon(cfg.KeyFile); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(out, "this board is set up already (%s, %s); nothing was changed\n", in.path, addresses(cfg))
	in.explainTheRest(out)
	return true, nil
}

// differences lists what the command line wants otherwise than the file has it.
func (in *initialisation) differences(cfg *config.Config) (texts []string) {
	differ := func(key, has, wanted string) {
		texts = append(texts, fmt.Sprintf("%s %s instead of %s", key, has, wanted))
	}
	if in.address != "" {
		wanted, err := config.ParseAddress(in.address)
		// Without a prefix length, nothing is said about the one that is there.
		same := func(a config.Address) bool {
			return a == wanted || a.IP == wanted.IP && wanted.Bits == config.FromSubnet
		}
		if err != nil || !slices.ContainsFunc(cfg.Addresses, same) {
			differ("the address", addresses(cfg), in.address)
		}
	}
	o := in.options
	if o.Interface != "" && o.Interface != cfg.Interface {
		differ("the interface", strconv.Quote(cfg.Interface), strconv.Quote(o.Interface))
	}
	if o.Group != "" && o.Group != cfg.Group {
		differ("the group", strconv.Quote(cfg.Group), strconv.Quote(o.Group))
	}
	if o.LED != "" && !sameLED(o.LED, cfg.LED) {
		differ("the LED", strconv.Quote(cfg.LED.String()), strconv.Quote(o.LED))
	}
	return texts
}

func sameLED(text string, light gpio.Spec) bool {
	spec, err := gpio.ParseSpec(text)
	return err == nil && spec == light
}

func addresses(cfg *config.Config) string {
	texts := make([]string, len(cfg.Addresses))
	for i, a := range cfg.Addresses {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

// explainTheRest says what is left to do, on this board and on the others.
func (in *initialisation) explainTheRest(out io.Writer) {
	fmt.Fprintf(out, "\nStart it:\n\n    %s\n", startLine)
	fmt.Fprintf(out, "\nEvery other board, once topdog is installed there, is set up from this one by\n\n    %s\n", in.copyLine())
	fmt.Fprintf(out, "\n(USER@BOARD is for you to fill in. The key passes through the pipe only.)\n")
}

const startLine = "sudo systemctl enable --now topdog"

// copyLine is the shell command that sets up another board, run on this one.
func (in *initialisation) copyLine() string {
	option := ""
	if in.path != config.DefaultPath {
		option = " --config " + quoteForShell(in.path)
	}
	return "sudo topdog init --export" + option + " | ssh USER@BOARD " +
		quoteForShell("sudo topdog init --import"+option+" && "+startLine)
}

// quoteForShell quotes text for a POSIX shell, where it needs it.
func quoteForShell(text string) string {
	const plain = "/._-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(plain, r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// exportTo writes configuration and key, but never where a person could see it.
func (in *initialisation) exportTo(out io.Writer) error {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return usageError{fmt.Errorf("--export writes the secret key and this is a terminal; pipe it, as in\n\n    %s", in.copyLine())}
	}
	return config.Export(out, in.path)
}

// importFrom makes this board one like that which exported.
func (in *initialisation) importFrom(input io.Reader, out io.Writer) error {
	if f, ok := input.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return usageError{fmt.Errorf("--import reads what --export writes, and this is a terminal; run this on the first board:\n\n    %s", in.copyLine())}
	}
	done, err := config.Import(input, filepath.Dir(in.path), in.options.Force)
	if err != nil {
		return err
	}
	if err := giveToDaemon(done.KeyPath); err != nil {
		return err
	}
	if !done.ConfigNew && !done.KeyNew {
		fmt.Fprintln(out, "this board is set up already; nothing was changed")
	}
	if done.ConfigNew {
		fmt.Fprintf(out, "wrote %s (%s)\n", done.ConfigPath, addresses(done.Config))
	} else if done.Own != nil {
		fmt.Fprintf(out, "kept  %s, which has its own %s\n", done.ConfigPath, strings.Join(done.Own, ", "))
	}
	if done.KeyNew {
		fmt.Fprintf(out, "wrote %s (%s)\n", done.KeyPath, done.Key)
	}
	return nil
}

// withSudo adds what helps most people who are refused.
func withSudo(err error) error {
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("%w; run it as root: sudo topdog init …", err)
	}
	return err
}

// daemonUser is the user that the systemd unit runs the daemon as.
const daemonUser = "topdog"

// giveToDaemon makes the key the daemon's own, if this is root and the package
// has made the user; the daemon does not run as root then and could not read it.
func giveToDaemon(keyPath string) error {
	u, err := user.Lookup(daemonUser)
	if err != nil || keyPath == "" || os.Geteuid() != 0 {
		return nil
	}
	return giveTo(u, keyPath)
}

func giveTo(u *user.User, keyPath string) error {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("give the key to the user %s: its number: %w", daemonUser, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return fmt.Errorf("give the key to the user %s: its group's number: %w", daemonUser, err)
	}
	// Not what a link points to: that may be anybody's file.
	if err := os.Lchown(keyPath, uid, gid); err != nil {
		return fmt.Errorf("give the key to the user %s, which the daemon runs as: %w", daemonUser, err)
	}
	return nil
}
