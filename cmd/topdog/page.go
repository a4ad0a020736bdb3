package main

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/page"
)

// What the page may take of a small board. It has half a megabyte in use, to which each connection adds about 20 kB, so the
// collector runs before there is 1 MB of garbage. Above the limit, which all connections together do not reach, the
// collector runs more often. One thread at a time computes: whatever strangers ask for, the other processors are left to
// the election.
const (
	pageGCPercent   = 25
	pageMemoryLimit = 24 << 20 // bytes, of which the runtime has 7 MB before anybody visits
	pageProcessors  = 1
	// giveBackEvery is how often the memory of a visit is given back. That takes a millisecond or two, and a page is in no
	// hurry.
	giveBackEvery = 10 * time.Second
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
			go keepSmall(c.Context())
			return page.Run(c.Context(), daemonOf(c), o)
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "the TCP port, with or without an `address` of this board in front of it (default: page_listen of the configuration)")
	return withSocket(c)
}

// keepSmall gives back unused memory, now and every giveBackEvery.
func keepSmall(ctx context.Context) {
	again := time.NewTicker(giveBackEvery)
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

// pageOptions are those of the configuration, except for an address that --listen gives. A board that is not set up has
// the defaults.
func pageOptions(c *cobra.Command, listen string, terminal bool) (page.Options, error) {
	file := c.Flags().Lookup("config")
	log := serviceLog()
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
			return page.Options{}, misuse("--listen: %w", err)
		}
	}
	// Only a daemon that runs tells the name of the board, and mDNS knows the machine by its own name.
	hosts := append(slices.Clip(cfg.PageHosts), cfg.Name, config.Defaults().Name)
	return page.Options{Listen: cfg.PageListen.String(), Hosts: hosts, Log: log}, nil
}
