// Command topdog keeps one IP address alive on a small LAN: the boards elect a
// leader, which holds the address and lights its LED.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/setup"
	"topdog/netio"
)

// The exit statuses. docs/operations.md explains them, and the unit file relies on exitConfig: after that one, systemd
// does not start the daemon again.
const (
	exitFailure = 1
	exitUsage   = 2
	exitConfig  = 78 // EX_CONFIG of sysexits.h
)

// With one of these words as its only argument, the program is a process that another process of topdog has started. They
// are not verbs. main looks for them first: these processes must stay small, and ignore the signals that end a
// verb.
const (
	holderWord  = "holder-of-daemon" // the holder of a daemon that has started it (netio.Holder)
	starterWord = "starter"          // starts the checkers of a daemon (internal/check)
)

// lives are the main functions of these processes.
var lives = map[string]func() error{
	holderWord:        netio.AttendHolder,
	starterWord:       check.AttendStarter,
	check.CheckerWord: check.Attend,
}

func main() {
	if len(os.Args) == 2 && lives[os.Args[1]] != nil {
		if err := lives[os.Args[1]](); err != nil {
			complain(os.Stderr, err)
			os.Exit(exitFailure)
		}
		os.Exit(0)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr *os.File) int {
	root := rootCommand()
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		completeTree(root)
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var said exitStatus
	if err != nil && !errors.As(err, &said) {
		complain(stderr, err)
	}
	return statusOf(err)
}

// statusOf returns the exit status for the error of a command. A service ends with exitConfig only if a person has to
// mend a file: see readFiles.
func statusOf(err error) int {
	var status exitStatus
	var bad config.Errors
	var usage usageError
	var asked setup.UsageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage), errors.As(err, &asked): // which may wrap a config.Errors
		return exitUsage
	case errors.As(err, &bad):
		return exitConfig
	default:
		return exitFailure
	}
}

// exitStatus ends the program with that status, which may be 0. Everything has been said already.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// misuse returns a usageError with that text.
func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// seeHelp makes an error a mistake in the command line of a command, and names the command's help.
func seeHelp(c *cobra.Command, err error) error {
	return misuse("%w (see: %s --help)", err, c.CommandPath())
}

// complain says what went wrong. The text may contain the names of other boards, or what a program has printed.
func complain(stderr io.Writer, err error) {
	fmt.Fprintln(stderr, "topdog:", console.Printable(err.Error()))
}

func rootCommand() *cobra.Command {
	root := program()
	root.SilenceUsage, root.SilenceErrors = true, true
	root.RunE = showHelp
	root.SetFlagErrorFunc(seeHelp)
	root.AddCommand(versionCommand())
	// The package installs what `topdog completion` prints, so that few people need the verb.
	root.CompletionOptions.HiddenDefaultCmd = true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	checkArgs(root)
	return root
}

// aboutTopdog is what the help of the program begins with.
const aboutTopdog = `topdog keeps one IP address alive on a LAN of small boards. The boards elect a
leader over UDP multicast; the leader holds the address and lights its LED.
`

// boardProgram returns the command topdog with the verbs that a board needs, and with the text of its help.
func boardProgram(about string) *cobra.Command {
	root := &cobra.Command{Use: "topdog", Short: "Keep one IP address alive on a LAN of small boards", Long: about}
	root.PersistentFlags().String("config", config.DefaultPath, "the configuration `file`")
	root.AddCommand(
		runCommand(),
		holderCommand(),
		witnessCommand(),
		statusCommand(),
		checkCommand(),
		watchCommand(),
		isLeaderCommand(),
		traceCommand(),
		resignCommand(),
		drainCommand(),
		undrainCommand(),
		pauseCommand(),
		unpauseCommand(),
		leaveCommand(),
		hooksCommand(),
		leadCommand(),
		targetCommand(),
		pageCommand(),
		cleanupCommand(),
		initCommand(),
		keyCommand(),
		ledCommand(),
	)
	return root
}

// showHelp is what a command does that only has subcommands.
func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// checkArgs makes wrong arguments of a command, and of those below it, mistakes in the command line. A command that
// does not check its arguments takes none.
func checkArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return seeHelp(c, err)
		}
		return nil
	}
	for _, below := range c.Commands() {
		checkArgs(below)
	}
}

// version is set by the linker for a release.
var version = ""

// versionText names the release, or the commit that a development build was made from.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "development build of " + s.Value[:12]
		}
	}
	return "development build"
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s (%s, %s/%s)\n",
				c.Root().Name(), versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
