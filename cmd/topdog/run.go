package main

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"topdog/gpio"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/internal/seccomp"
	"topdog/netio"
)

func runCommand() *cobra.Command {
	var holder string
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon in the foreground, as systemd does. SIGTERM hands over and ends it,
SIGHUP reads the configuration again.

A separate process, the holder, does what needs privileges. The daemon starts its own holder,
which needs root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW, and CAP_BPF for the fence.
With --holder the daemon uses the holder of topdog-holder.service, and needs no privileges.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), configPath(c), runOptions{holder: holder, atTerminal: atTerminal()})
		},
	}
	c.Flags().StringVar(&holder, "holder", "", "use the holder that listens at this `path` (topdog-holder.service: "+defaultHolderSocket+")")
	return c
}

func witnessCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "witness",
		Short: "Vote, and never lead",
		Long: `Run a witness in the foreground: a voter that never leads. With two boards and a
witness, one of the boards has a majority when the other one fails (see
docs/two-boards.md).

It reads the same configuration and the same key as the boards, with
algorithm = "strict" and its own address among the voters. It needs no root, no
capability and no light, only the UDP port of the group; on kernels before 5.7 it
needs CAP_NET_RAW. It never holds the address, and ignores what the configuration says
about the address and the lead. SIGTERM ends it, SIGHUP reads the configuration again.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), configPath(c), runOptions{witness: true, atTerminal: atTerminal()})
		},
	}
}

// runOptions say what is run: a board, or a witness.
type runOptions struct {
	holder     string // where the holder is asked; "" for one of its own
	witness    bool
	atTerminal bool // see readFiles
}

// daemonGCPercent has the collector run at 2 MB instead of 4. The daemon has half a megabyte in use, and its loop
// makes hardly any garbage: whoever asks for its status does.
const daemonGCPercent = 50

// startedWithin is more than a start takes, with its first election. Most of the memory that a start needs is free by then.
const startedWithin = 10 * time.Second

// run runs a board, or a witness.
func run(ctx context.Context, path string, o runOptions) error {
	log := newLog(logrus.InfoLevel)
	entry := logrus.NewEntry(log)
	var groups config.Groups
	if err := readFiles(ctx, o.atTerminal, entry, func() (err error) {
		groups, err = readBoard(path, o)
		return err
	}); err != nil {
		return err
	}
	log.SetLevel(groups.First().LogLevel)
	stdlog.SetFlags(0)
	stdlog.SetOutput(debugLog{log}) // a library that we use logs by itself

	platforms, err := platformsOf(ctx, groups, o, entry)
	if err != nil {
		return err
	}
	// The wait for the holder may have been long, and the keys may have been changed meanwhile.
	if err := readFiles(ctx, o.atTerminal, entry, groups.ReadKeys); err != nil {
		return err
	}
	noExec := refuseExec()
	if !noExec.On {
		log.Warnf("%s; whoever takes this daemon over may execute programs", noExec.Text)
	}
	board := daemon.NewBoard(groups.First().Socket, entry)
	for i, cfg := range groups {
		options := daemon.Options{
			Log: logOf(entry, cfg), Version: versionText(), Witness: o.witness, StateDir: stateDir(cfg), Refusals: []console.Defence{noExec},
		}
		if _, err := board.Add(cfg, platforms[i], options); err != nil {
			return err
		}
	}
	log.Infof("topdog %s starts with %s", versionText(), path)
	debug.SetGCPercent(daemonGCPercent)
	time.AfterFunc(startedWithin, giveBack)
	go tellOnAbort(os.Stderr)
	defer reloadOnHangup(ctx, board, path)()
	return board.Run(ctx)
}

// readBoard reads the configuration and the keys of a board, or of a witness.
func readBoard(path string, o runOptions) (config.Groups, error) {
	groups, err := config.LoadGroups(path)
	if err != nil {
		return nil, err
	}
	if o.witness {
		groups = groups.WithVoters()
	}
	if len(groups) == 0 {
		return nil, config.Errors{{File: path, Message: `a witness votes, and only the algorithm "strict" has votes`,
			Hint: "copy the configuration of the boards, which lists the witness among the voters; `topdog init --strict` makes one"}}
	}
	return groups, groups.ReadKeys()
}

// platformsOf returns the machine of a board, or of a witness, as each group has it. This is the last place where the daemon
// starts other programs.
func platformsOf(ctx context.Context, groups config.Groups, o runOptions, log *logrus.Entry) ([]daemon.Platform, error) {
	platforms := make([]daemon.Platform, len(groups))
	if o.witness {
		for i, cfg := range groups {
			platforms[i] = daemon.Witness(cfg)
		}
		return platforms, nil
	}
	for _, cfg := range groups {
		gpio.Init(cfg.LED) // before the first socket is opened
	}
	start := startHolder
	if o.holder != "" {
		start = func(groups config.Groups) ([]*netio.Holder, error) { return dialHolder(ctx, o.holder, groups, log) }
	}
	holders, err := start(groups)
	if err != nil {
		return nil, err
	}
	seconds := holders[len(groups):]
	for i, cfg := range groups {
		checker, err := check.Open(holders[i].AskGateway, starterWord)
		if err != nil {
			return nil, err
		}
		o := daemon.RealOptions{Holder: holders[i], Checker: checker, Log: logOf(log, cfg)}
		if cfg.SecondPath {
			o.SecondHolder, seconds = seconds[0], seconds[1:]
		}
		platforms[i] = daemon.Real(cfg, o)
	}
	return platforms, nil
}

// refuseExec has the kernel refuse from now on that this process executes any program. It is called before the daemon
// hears its first packet, and its failure does not keep the daemon from running.
func refuseExec() console.Defence {
	d := console.Defence{Kind: console.DefenceNoExec, On: true, Text: "the kernel refuses this daemon to execute anything"}
	if err := seccomp.RefuseExec(); err != nil {
		d.On, d.Text = false, err.Error()
	}
	return d
}

// stateDir is where the daemon keeps what outlives it: as systemd says (StateDirectory= in the unit), or without systemd
// in the directory of the control socket, which the next boot empties.
func stateDir(cfg *config.Config) string {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	return cfg.NotesDir()
}

// reloadOnHangup has the daemon read its configuration again at each SIGHUP, until somebody ends the program or end is
// called. A daemon that is being ended must not report a reload to systemd.
func reloadOnHangup(ctx context.Context, board *daemon.Board, path string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				board.Reload(path)
			}
		}
	})
	return func() {
		cancel()
		reloading.Wait()
		signal.Stop(hup)
	}
}

const (
	// maxStacks bounds what is said of a daemon that stands still, in bytes: about a hundred lines.
	maxStacks = 8 << 10
	// exitAborted is what a shell makes of SIGABRT.
	exitAborted = 128 + int(syscall.SIGABRT)
)

// tellOnAbort waits until the watchdog of systemd ends this daemon (SIGABRT), and says what the daemon was doing. Go's
// runtime would say the same in several hundred lines, with the registers of the processor.
func tellOnAbort(to io.Writer) {
	aborted := make(chan os.Signal, 1)
	signal.Notify(aborted, syscall.SIGABRT)
	<-aborted
	stacks := make([]byte, maxStacks)
	fmt.Fprintf(to, "<2>this daemon stood still, and the watchdog ends it. It was doing this:\n%s\n",
		stacks[:runtime.Stack(stacks, true)])
	os.Exit(exitAborted)
}
