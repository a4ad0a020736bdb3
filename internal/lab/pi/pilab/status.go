package pilab

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi"
)

func statusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show power, cable and light of each board, and who has the address",
		Long: `Show power, cable and light of each board, and who has the address. All of it is
seen from outside: the lights in the registers of the emulated chips, for 4.5 s, the
address by asking the LAN. What topdog itself says: pilab sh N topdog status`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.withLab(func(l *pi.Lab) error { return showStatus(c.Context(), c.OutOrStdout(), l) })
		},
	}
}

func showStatus(ctx context.Context, out io.Writer, l *pi.Lab) error {
	lights := make([]string, l.State.Boards)
	var g sync.WaitGroup
	for i, b := range l.Boards() {
		g.Go(func() { lights[i] = light(ctx, b) })
	}
	holders, err := l.Holders(ctx, l.Floating())
	g.Wait()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is answered for by %s; namespace %s\n\n", l.Floating(), names(holders), l.State.Segment)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BOARD\tADDRESS\tPOWER\tCABLE\tLIGHT")
	for i, b := range l.Boards() {
		cable := "in"
		if !b.Plugged() {
			cable = "out"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", b.Name(), b.Address().Addr(), power(b), cable, lights[i])
	}
	return table.Flush()
}

func power(b *pi.Board) string {
	switch {
	case !b.On():
		return "off"
	case !b.Ready():
		return "booting"
	}
	return "on"
}

// light says what the board's light shows, or why that is unknown.
func light(ctx context.Context, b *pi.Board) string {
	if !b.On() {
		return ""
	}
	w, err := b.WatchLights(ctx, pi.WatchTime, b.Light())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %s", b.Light(), w[0])
}

// names lists boards: "pi1 and pi2".
func names(boards []int) string {
	if len(boards) == 0 {
		return "nobody"
	}
	all := make([]string, len(boards))
	for i, n := range boards {
		all[i] = fmt.Sprintf("pi%d", n)
	}
	return strings.Join(all, " and ")
}

func ledCommand(o *options) *cobra.Command {
	var now bool
	c := &cobra.Command{
		Use:   "led N",
		Short: "Say what the lights of board N show, as seen in the registers of its chip",
		Long: `Say what the lights of board N show: one wired to GPIO17, and the board's own ACT
LED. They are looked at for 4.5 s in the registers of the emulated chip, through
QEMU's monitor: the board is not asked. --now looks once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withBoard(args[0], func(_ *pi.Lab, b *pi.Board) error {
				return showLights(c.Context(), c.OutOrStdout(), b, now)
			})
		},
	}
	c.Flags().BoolVar(&now, "now", false, "look once and say whether they are lit at this moment")
	return c
}

func showLights(ctx context.Context, out io.Writer, b *pi.Board, now bool) error {
	pins := []pi.Pin{pi.GPIO17, pi.ACT}
	if !now {
		watches, err := b.WatchLights(ctx, pi.WatchTime, pins...)
		for i, w := range watches {
			fmt.Fprintf(out, "%-6s  %s\n", pins[i], w)
		}
		return err
	}
	m, err := b.Monitor(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	lit, err := m.Lit(b.Machine, pins...)
	for i, on := range lit {
		fmt.Fprintf(out, "%-6s  %s\n", pins[i], map[bool]string{true: "lit", false: "dark"}[on])
	}
	return err
}
