package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
)

func ledCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "led",
		Short: "Try the light",
		RunE:  showHelp,
	}
	c.AddCommand(ledTestCommand())
	return c
}

func ledTestCommand() *cobra.Command {
	var each time.Duration
	c := &cobra.Command{
		Use:   "test [LED]",
		Short: "Show all patterns of the light",
		Long: `Show every pattern on the board's light, one after the other, and say which it is.
LED is the light, written as in the configuration: ACT, GPIO17, GPIO17:low,
gpiochip0/17, led:NAME. Without LED, the command uses the light of the configuration,
or one after the other if groups have several.`,
		Example: "  topdog led test\n  topdog led test GPIO17 --each 10s",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if each < minEach || each > maxEach {
				return misuse("--each must be %v to %v, is %v", minEach, maxEach, each)
			}
			lights, err := lightsToTest(c.Context(), configPath(c), argument(args))
			for _, spec := range lights {
				if err == nil {
					err = testLight(c.Context(), c.OutOrStdout(), spec, each)
				}
			}
			return err
		},
	}
	c.Flags().DurationVar(&each, "each", 6*time.Second, "how `long` each pattern shows")
	c.ValidArgsFunction = cobra.FixedCompletions(lights(), cobra.ShellCompDirectiveNoFileComp)
	return c
}

// The limits of --each. The slowest pattern repeats after 3 s.
const (
	minEach = time.Second
	maxEach = time.Hour
)

// lightsToTest finds the light of that name, or without a name those of the configuration, and makes sure that no daemon
// uses them: two programs would write over each other, or be refused without an explanation.
func lightsToTest(ctx context.Context, path, name string) ([]gpio.Spec, error) {
	groups, err := config.LoadGroups(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A light can be tried before anything is configured.
		groups = config.Groups{config.Defaults()}
	case err != nil:
		return nil, err
	}
	lit := map[gpio.Spec]*config.Config{} // the group that has the light
	var lights []gpio.Spec
	for _, cfg := range groups {
		if cfg.LED != (gpio.Spec{}) {
			lit[cfg.LED] = cfg
			lights = append(lights, cfg.LED)
		}
	}
	if name != "" {
		spec, err := gpio.ParseSpec(name)
		if err != nil {
			return nil, usageError{err}
		}
		lights = []gpio.Spec{spec}
	}
	if len(lights) == 0 || lights[0] == (gpio.Spec{}) {
		return nil, errors.New(`there is no light to test: led = "none"; name one, as in: topdog led test GPIO17`)
	}
	for _, spec := range lights {
		gpio.Init(spec) // before the first socket is opened
	}
	for _, spec := range lights {
		if cfg := lit[spec]; cfg != nil { // if it is the same one by another name, it is busy
			if err := unused(ctx, cfg); err != nil {
				return nil, err
			}
		}
	}
	return lights, nil
}

// unused returns an error if a daemon has the light of a group.
func unused(ctx context.Context, cfg *config.Config) error {
	daemon := console.Dial(cfg.Socket)
	if cfg.Several {
		daemon = daemon.Of(cfg.Group)
	}
	status, err := daemon.Status(ctx)
	if errors.Is(err, console.ErrNotRunning) {
		return nil
	}
	shows := ""
	if err == nil {
		shows = fmt.Sprintf(" (%s)", status.LEDText)
	}
	return fmt.Errorf("the daemon runs and has the light %s%s: `topdog status` says what it shows. "+
		"To test it: sudo systemctl stop topdog (another board takes over), test, sudo systemctl start topdog", cfg.LED, shows)
}

func testLight(ctx context.Context, out io.Writer, spec gpio.Spec, each time.Duration) error {
	led, err := gpio.Open(spec, gpio.Options{})
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("%w; or, for this test: sudo topdog led test %s", err, spec)
	}
	if err != nil {
		return err
	}
	return gpio.Walk(ctx, out, led, each)
}
