package main

import (
	"context"
	"fmt"
	stdlog "log"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/netio"
	"topdog/wire"
)

func runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon in the foreground, as systemd does. It needs root, or the
capabilities CAP_NET_ADMIN and CAP_NET_RAW. SIGTERM hands over and ends it,
SIGHUP reads the configuration again.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return run(c.Context(), path)
		},
	}
}

// configOptions is what the configuration cannot know by itself.
func configOptions() config.Options {
	return config.Options{
		Algorithms: election.Algorithms(),
		Detectors:  election.Detectors(),
		Fanouts:    election.Fanouts(),
		Measures:   election.ScoreSources(),
		CheckLED: func(text string) error {
			_, err := gpio.ParseSpec(text)
			return err
		},
	}
}

func run(ctx context.Context, path string) error {
	cfg, err := config.Load(path, configOptions())
	if err != nil {
		return err
	}
	log := newLog(cfg.LogLevel)
	stdlog.SetFlags(0)
	stdlog.SetOutput(log.WriterLevel(logrus.DebugLevel)) // a library that we use logs by itself

	led, err := gpio.ParseSpec(cfg.LED)
	if err != nil {
		return err
	}
	gpio.Init(led) // before the first socket is opened

	nodeConfig, err := nodeConfig(cfg)
	if err != nil {
		return err
	}
	platform := daemon.Real(daemon.RealOptions{Group: cfg.Multicast, HoldMethod: holdMethods[cfg.Hold], Deadman: []string{"/proc/self/exe", deadmanWord}})
	platform.OpenLED = ledOpener(led, cfg.Socket, log)
	n, err := daemon.New(nodeConfig, platform, daemon.Options{Log: logrus.NewEntry(log)})
	if err != nil {
		return err
	}
	log.Infof("topdog %s starts with %s", versionText(), path)

	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var reloading sync.WaitGroup
	defer reloading.Wait()
	running, end := context.WithCancel(ctx)
	defer end()
	reloading.Go(func() {
		current := cfg
		for {
			select {
			case <-running.Done():
				return
			case <-hup:
				current = reload(n, log, cfg, current, path)
			}
		}
	})
	return n.Run(ctx)
}

// holdMethods translates the configuration's words.
var holdMethods = map[config.Hold]netio.HoldMethod{
	config.HoldAuto:     netio.HoldAuto,
	config.HoldTUN:      netio.HoldTUN,
	config.HoldLifetime: netio.HoldLifetime,
}

// nodeConfig translates a configuration, and reads the key.
func nodeConfig(cfg *config.Config) (daemon.Config, error) {
	algorithm, ok := election.AlgorithmNamed(cfg.Algorithm)
	if !ok {
		return daemon.Config{}, fmt.Errorf("there is no algorithm %q", cfg.Algorithm)
	}
	detector := election.DetectorDefault
	if cfg.Detector != config.DefaultDetector {
		if detector, ok = election.DetectorNamed(cfg.Detector); !ok {
			return daemon.Config{}, fmt.Errorf("there is no detector %q", cfg.Detector)
		}
	}
	fanout, ok := election.FanoutNamed(cfg.Fanout)
	if !ok {
		return daemon.Config{}, fmt.Errorf("there is no fanout %q", cfg.Fanout)
	}
	measure, ok := election.ScoreSourceNamed(cfg.Measure)
	if !ok {
		return daemon.Config{}, fmt.Errorf("there is no measure %q", cfg.Measure)
	}
	var key []byte
	if cfg.KeyFile != config.NoKey {
		k, err := config.LoadKey(cfg.KeyFile)
		if err != nil {
			return daemon.Config{}, err
		}
		key = k.Bytes()
	}
	n := daemon.Config{
		Interface:    cfg.Interface,
		Group:        cfg.Group,
		Key:          key,
		ID:           wire.ID(cfg.ID),
		Name:         cfg.Name,
		Priority:     cfg.Priority,
		Preempt:      cfg.Preempt,
		Heartbeat:    cfg.Heartbeat,
		Algorithm:    algorithm,
		Detector:     detector,
		Fanout:       fanout,
		Measure:      measure,
		ScoreCommand: cfg.ScoreCommand,
		Port:         cfg.Multicast.Port(),
		Peers:        cfg.Peers,
		Socket:       cfg.Socket,
		Version:      versionText(),
	}
	for _, a := range cfg.Addresses {
		n.Addresses = append(n.Addresses, daemon.Address{IP: a.IP, Bits: max(0, a.Bits)})
	}
	return n, nil
}

// reload reads the configuration again and applies what can be applied while the
// daemon runs. A configuration with a mistake changes nothing.
//
// What needs a restart is compared with what the daemon was started with, not
// with what was read last: it stays pending until the restart, or until it is
// changed back.
func reload(n *daemon.Daemon, log *logrus.Logger, started, old *config.Config, path string) *config.Config {
	n.Reloading()
	defer n.Reloaded()
	cfg, err := config.Load(path, configOptions())
	if err != nil {
		log.Errorf("the new configuration was not applied:\n%v", err)
		return old
	}
	changed := slices.DeleteFunc(old.Changed(cfg), func(key string) bool { return !config.Live(key) })
	pending := slices.DeleteFunc(started.Changed(cfg), config.Live)
	for _, key := range pending {
		log.Warnf("%s: %s has changed, which needs a restart: systemctl restart topdog", cfg.Where(key), key)
	}
	if len(changed) == 0 {
		if len(pending) == 0 {
			log.Info("read the configuration again; nothing has changed")
		}
		return cfg
	}
	setLevel(log, cfg.LogLevel)
	spec, err := gpio.ParseSpec(cfg.LED)
	if err != nil {
		log.Errorf("%s: %v", cfg.Where("led"), err)
		return old
	}
	gpio.Init(spec)
	n.Reconfigure(daemon.Live{
		Priority:     cfg.Priority,
		Preempt:      cfg.Preempt,
		Peers:        cfg.Peers,
		ScoreCommand: cfg.ScoreCommand,
		OpenLED:      ledOpener(spec, started.Socket, log),
	})
	log.Infof("read the configuration again; changed: %v", changed)
	return cfg
}
