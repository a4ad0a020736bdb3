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

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/internal/seccomp"
	"topdog/internal/starter"
	"topdog/netio"
)

func runCommand() *cobra.Command {
	var holder string
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon in the foreground, as systemd does. SIGTERM hands over and ends it,
SIGHUP reads the configuration again.

What needs rights is done by a holder. The daemon starts one by itself, which needs
root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW, and CAP_BPF for the fence. With
--holder it uses that of topdog-holder.service, and needs no right.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return run(c.Context(), path, runOptions{holder: holder, atTerminal: atTerminal()})
		},
	}
	c.Flags().StringVar(&holder, "holder", "", "use the holder that is asked at this `path` (topdog-holder.service: "+defaultHolderSocket+")")
	return c
}

// runOptions say what is run: a board, or a witness.
type runOptions struct {
	holder     string // where the holder is asked; "" for one of its own
	witness    bool
	atTerminal bool // see readFiles
}

// stateDir is where systemd has the daemon keep what outlives it (StateDirectory= in the unit). Without
// systemd it is the directory of the control socket, which the next boot empties.
func stateDir(cfg *config.Config) string {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	return cfg.NotesDir()
}

// daemonGCPercent has the collector run at 2 MB instead of 4. The daemon has half a megabyte in use, and its loop
// makes hardly any garbage: whoever asks for its status does.
const daemonGCPercent = 50

// giveBack gives back the memory that is not in use any more, as after a start. It is not for where anything is in a
// hurry, since a collection takes the processor for milliseconds.
func giveBack() {
	debug.FreeOSMemory()
	netio.DropProgram()
}

// platformOf returns the machine of a board, or of a witness. What this process executes in its life, it executes here.
func platformOf(ctx context.Context, cfg *config.Config, o runOptions, log *logrus.Entry) (daemon.Platform, error) {
	if o.witness {
		return daemon.Witness(cfg), nil
	}
	gpio.Init(cfg.LED) // before the first socket is opened
	holder, err := openHolder(ctx, o.holder, cfg, log)
	if err != nil {
		return daemon.Platform{}, err
	}
	s, err := starter.Open(starterWord)
	if err != nil {
		return daemon.Platform{}, err
	}
	return daemon.Real(cfg, daemon.RealOptions{Holder: holder, Starter: s, Log: log}), nil
}

// refuseExec has the kernel refuse this process to execute anything from now on, which is before it hears its first
// packet. It goes on where the kernel cannot.
func refuseExec() console.Defence {
	d := console.Defence{Kind: console.DefenceNoExec, On: true, Text: "the kernel refuses this daemon to execute anything"}
	if err := seccomp.RefuseExec(); err != nil {
		d.On, d.Text = false, err.Error()
	}
	return d
}

// readBoard reads the configuration and the keys of a board, or of a witness.
func readBoard(path string, o runOptions) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	if o.witness && len(cfg.Voters) == 0 {
		return nil, config.Errors{{File: path, Message: `a witness votes, and only the algorithm "strict" has votes`,
			Hint: "copy the configuration of the boards, which lists the witness among the voters; `topdog init --strict` makes one"}}
	}
	return cfg, cfg.ReadKeys()
}

// run runs a board, or a witness.
func run(ctx context.Context, path string, o runOptions) error {
	log := newLog(logrus.InfoLevel)
	entry := logrus.NewEntry(log)
	var cfg *config.Config
	if err := readFiles(ctx, o.atTerminal, entry, func() (err error) {
		cfg, err = readBoard(path, o)
		return err
	}); err != nil {
		return err
	}
	log.SetLevel(cfg.LogLevel)
	stdlog.SetFlags(0)
	stdlog.SetOutput(log.WriterLevel(logrus.DebugLevel)) // a library that we use logs by itself

	platform, err := platformOf(ctx, cfg, o, entry)
	if err != nil {
		return err
	}
	// It may have waited for the holder for long, and the keys may have been changed meanwhile.
	if err := readFiles(ctx, o.atTerminal, entry, cfg.ReadKeys); err != nil {
		return err
	}
	noExec := refuseExec()
	if !noExec.On {
		log.Warnf("%s; whoever takes this daemon over may execute programs", noExec.Text)
	}
	d, err := daemon.New(cfg, platform, daemon.Options{
		Log: entry, Version: versionText(), Witness: o.witness, StateDir: stateDir(cfg), Refusals: []console.Defence{noExec},
	})
	if err != nil {
		return err
	}
	log.Infof("topdog %s starts with %s", versionText(), path)
	debug.SetGCPercent(daemonGCPercent)
	giveBack()

	go tellOnAbort(os.Stderr)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var reloading sync.WaitGroup
	defer reloading.Wait()
	running, end := context.WithCancel(ctx)
	defer end()
	reloading.Go(func() {
		for {
			select {
			case <-running.Done():
				return
			case <-hup:
				d.Reload(path)
			}
		}
	})
	return d.Run(ctx)
}

// maxStacks bounds what is said of a daemon that stands still, in bytes: about a hundred lines.
const maxStacks = 8 << 10

// tellOnAbort waits until the watchdog of systemd ends this daemon (SIGABRT), and says what it was doing. The runtime of Go would say the
// same in several hundred lines, with the registers of the processor.
func tellOnAbort(to io.Writer) {
	aborted := make(chan os.Signal, 1)
	signal.Notify(aborted, syscall.SIGABRT)
	<-aborted
	stacks := make([]byte, maxStacks)
	fmt.Fprintf(to, "<2>this daemon stood still, and the watchdog ends it. It was doing this:\n%s\n", stacks[:runtime.Stack(stacks, true)])
	os.Exit(exitAborted)
}

// exitAborted is what a shell makes of SIGABRT.
const exitAborted = 128 + int(syscall.SIGABRT)

// openHolder starts a holder, or waits for that of a service for as long as it takes.
func openHolder(ctx context.Context, path string, cfg *config.Config, log *logrus.Entry) (*netio.Holder, error) {
	if path == "" {
		return netio.StartHolder([]string{"/proc/self/exe", holderWord}, daemon.HolderOptions(cfg))
	}
	for w := newWait("the holder", log); ; {
		holder, err := netio.DialHolder(path)
		if err == nil {
			warn(w.notifier.Watchdog()) // the fence may take as long again, see prepareWithin in netio
			return holder, nil
		}
		w.tell(err)
		if err := w.pause(ctx); err != nil {
			return nil, err
		}
	}
}
