package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/page"
)

// What a page may have of a small board. It has half a megabyte in use, to which each connection adds about 20 kB, so the
// collector runs before there is 1 MB of garbage. From the limit on, which all connections at once do not reach, it
// runs more often. One thread at a time computes: whatever strangers ask for leaves the other processors to the election.
const (
	pageGCPercent   = 25
	pageMemoryLimit = 24 << 20 // bytes, of which the runtime has 7 MB before anybody looks
	pageProcessors  = 1
	// The page has all the time. What its start or a visit has needed is given back, which takes a millisecond or two.
	pageGivesBack = 10 * time.Second
)

func pageCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "page",
		Short: "Serve a page with all boards, and metrics, on the LAN",
		Long: `Serve a page on the LAN that shows who holds the address and all boards, as
topdog-page.service does; and the same for programs: JSON, metrics for Prometheus, and
health for load balancers. It waits for the daemon, and goes on when that is restarted.

Everybody who reaches the port may look, and nobody can change anything. It needs no
root. All of it is in /usr/share/doc/topdog/docs/page.md.`,
		Example: "  topdog page --listen 127.0.0.1:8080",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := pageOptions(c, listen, atTerminal())
			if err != nil {
				return err
			}
			runtime.GOMAXPROCS(pageProcessors)
			debug.SetGCPercent(pageGCPercent)
			debug.SetMemoryLimit(pageMemoryLimit)
			go giveBackEvery(c.Context(), pageGivesBack)
			return page.Run(c.Context(), console.Dial(socketPath(c)), o)
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "the TCP port, with or without an `address` of this board in front of it (default: page_listen of the configuration)")
	return withSocket(c)
}

// giveBackEvery gives back at once, and then time and again, what memory is not in use.
func giveBackEvery(ctx context.Context, pause time.Duration) {
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		giveBack()
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// pageOptions are those of the configuration, and of the flag, which comes first. A board that is not set up
// has the defaults.
func pageOptions(c *cobra.Command, listen string, terminal bool) (page.Options, error) {
	file := c.Flags().Lookup("config")
	log := logrus.NewEntry(newLog(logrus.InfoLevel))
	var cfg *config.Config
	err := readFiles(c.Context(), terminal, log, func() (err error) {
		cfg, err = config.Load(file.Value.String())
		if errors.Is(err, fs.ErrNotExist) && !file.Changed {
			cfg, err = config.Defaults(), nil
		}
		return err
	})
	if err != nil {
		return page.Options{}, err
	}
	if listen != "" {
		if cfg.PageListen, err = config.ParseListen(listen); err != nil {
			return page.Options{}, usageError{fmt.Errorf("--listen: %w", err)}
		}
	}
	// The daemon tells the board's name only once it runs, and mDNS knows the machine by its own name.
	hosts := append(slices.Clip(cfg.PageHosts), cfg.Name, config.Defaults().Name)
	return page.Options{Listen: cfg.PageListen.String(), Hosts: hosts, Log: log}, nil
}
