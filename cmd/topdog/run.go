package main

import (
	"context"
	stdlog "log"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/netio"
)

func runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon in the foreground, as systemd does. It needs root, or the
capabilities CAP_NET_ADMIN and CAP_NET_RAW, and CAP_BPF for the fence. SIGTERM
hands over and ends it, SIGHUP reads the configuration again.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return run(c.Context(), path, false)
		},
	}
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

// run runs a board, or a witness.
func run(ctx context.Context, path string, witness bool) error {
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	if witness && len(cfg.Voters) == 0 {
		return config.Errors{{File: path, Message: `a witness votes, and only the algorithm "strict" has votes`,
			Hint: "copy the configuration of the boards, which lists the witness among the voters; `topdog init --strict` makes one"}}
	}
	if err := cfg.ReadKeys(); err != nil {
		return err
	}
	log := newLog(cfg.LogLevel)
	stdlog.SetFlags(0)
	stdlog.SetOutput(log.WriterLevel(logrus.DebugLevel)) // a library that we use logs by itself

	entry := logrus.NewEntry(log)
	var platform daemon.Platform
	if witness {
		platform = daemon.Witness(cfg)
	} else {
		platform = daemon.Real(cfg, daemon.RealOptions{
			Deadman: []string{"/proc/self/exe", deadmanWord}, Checker: []string{"/proc/self/exe", checkerWord}, Log: entry,
		})
	}
	d, err := daemon.New(cfg, platform, daemon.Options{Log: entry, Version: versionText(), Witness: witness, StateDir: stateDir(cfg)})
	if err != nil {
		return err
	}
	log.Infof("topdog %s starts with %s", versionText(), path)
	debug.SetGCPercent(daemonGCPercent)
	giveBack()

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
