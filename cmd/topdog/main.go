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
	"syscall"

	"github.com/spf13/cobra"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/lab/demopage"
	"topdog/internal/setup"
	"topdog/internal/starter"
	"topdog/netio"
)

// Exit statuses. They are documented in docs/operations.md, and the unit file
// relies on the one for a bad configuration: it is not worth a restart.
const (
	exitFailure = 1
	exitUsage   = 2
	exitConfig  = 78 // EX_CONFIG of sysexits.h
)

// holderWord on the command line makes the program the holder of a daemon that has started it (see
// netio.Holder). It is no verb for people, and comes before everything else: the holder
// must stay small, and must not end when it is told to.
const holderWord = "holder-of-daemon"

// starterWord likewise makes it what starts the checkers of a daemon (see internal/starter).
const starterWord = "starter"

// demoPageWord likewise makes it the process that serves the page of a demonstration that needs root (see internal/lab/demopage).
const demoPageWord = "demo-page"

// lives are the main functions of the processes that are no verbs.
var lives = map[string]func() error{
	holderWord:          netio.AttendHolder,
	starterWord:         starter.Attend,
	starter.CheckerWord: check.Attend,
	demoPageWord:        demopage.AttendChild,
}

func main() {
	if len(os.Args) == 2 && lives[os.Args[1]] != nil {
		os.Exit(attend(lives[os.Args[1]], os.Stderr))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// attend is the life of a process that is no verb. It returns its exit status.
func attend(life func() error, stderr io.Writer) int {
	if err := life(); err != nil {
		complain(stderr, err)
		return exitFailure
	}
	return 0
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr *os.File) int {
	root := rootCommand()
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsage(root)
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

// statusOf returns the exit status that stands for what a command has come to. What runs as a service ends with
// exitConfig only if that is final: see readFiles.
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
	case errors.As(err, &usage), errors.As(err, &asked): // also if it would make a bad configuration
		return exitUsage
	case errors.As(err, &bad):
		return exitConfig
	default:
		return exitFailure
	}
}

// exitStatus ends the program with that status when everything has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "topdog",
		Short: "Keep one IP address alive on a LAN of small boards",
		Long: `topdog keeps one IP address alive on a LAN of small boards. The boards elect a
leader over UDP multicast; the leader holds the address and lights its LED.

Try it without any hardware:   topdog demo
Set up the first board:        topdog init 192.168.1.250`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
	})
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
		demoCommand(),
		simCommand(),
		versionCommand(),
	)
	for _, c := range append(root.Commands(), root) {
		if c.Args == nil {
			c.Args = cobra.NoArgs
		}
		c.Args = usageArgs(c.Args)
	}
	// The package installs what `topdog completion` prints, so that few people need the verb.
	root.CompletionOptions.HiddenDefaultCmd = true
	completeTree(root)
	return root
}

// usageArgs makes what a check of the arguments finds a mistake in the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
		}
		return nil
	}
}
