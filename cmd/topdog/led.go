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
gpiochip0/17, led:NAME. Without LED, the command uses the light of the configuration.`,
		Example: "  topdog led test\n  topdog led test GPIO17 --each 10s",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if each < minEach || each > maxEach {
				return misuse("--each must be %v to %v, is %v", minEach, maxEach, each)
			}
			spec, err := lightToTest(c.Context(), configPath(c), argument(args))
			if err != nil {
				return err
			}
			return testLight(c.Context(), c.OutOrStdout(), spec, each)
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

// lightToTest finds the light of that name, or without a name that of the configuration, and makes sure that no daemon
// uses it: two programs would write over each other, or be refused without an explanation.
func lightToTest(ctx context.Context, path, name string) (gpio.Spec, error) {
	groups, err := config.LoadGroups(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A light can be tried before anything is configured.
		groups = config.Groups{config.Defaults()}
	case err != nil:
		return gpio.Spec{}, err
	}
	spec := groups.First().LED
	if name != "" {
		if spec, err = gpio.ParseSpec(name); err != nil {
			return gpio.Spec{}, usageError{err}
		}
	}
	if spec == (gpio.Spec{}) {
		return gpio.Spec{}, errors.New(`there is no light to test: led = "none"; name one, as in: topdog led test GPIO17`)
	}
	gpio.Init(spec) // before the first socket is opened
	if spec != groups.First().LED {
		return spec, nil // if it is the same one by another name, it is busy
	}
	status, err := console.Dial(groups.First().Socket).Status(ctx)
	if errors.Is(err, console.ErrNotRunning) {
		return spec, nil
	}
	shows := ""
	if err == nil {
		shows = fmt.Sprintf(" (%s)", status.LEDText)
	}
	return gpio.Spec{}, fmt.Errorf("the daemon runs and has the light %s%s: `topdog status` says what it shows. "+
		"To test it: sudo systemctl stop topdog (another board takes over), test, sudo systemctl start topdog", spec, shows)
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
