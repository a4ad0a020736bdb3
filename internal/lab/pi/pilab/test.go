package pilab

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi/trial"
)

func (o *options) testCommand() *cobra.Command {
	var emulated int
	c := &cobra.Command{
		Use:   "test",
		Short: "Put three boards of their own through everything that happens to a cluster",
		Long: `Boot three boards of their own, and put them through what happens to a cluster:
installation, power cut, cable, crash, clock, upgrade, removal. Takes about five
minutes on two processors. Needs no lab that is up, and disturbs none.

With --boards 1 only one is emulated, and topdog runs on this machine in place of the
others: less work for the processors. What network namespaces show as well is left out.

The exit status is 0 if all went as it should. Whatever happens, nothing is left
running.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if emulated < 1 || emulated > trial.MaxEmulated {
				return misuse("--boards %d: say 1 to %d", emulated, trial.MaxEmulated)
			}
			if err := os.MkdirAll(o.dir, 0o755); err != nil {
				return err
			}
			return trial.Run(c.Context(), trial.Options{Supply: o.supply(), Emulated: emulated, Out: c.OutOrStdout()})
		},
	}
	c.Flags().IntVar(&emulated, "boards", trial.MaxEmulated, fmt.Sprintf("how `many` of the %d are emulated", trial.MaxEmulated))
	return c
}

func (o *options) armv6Command() *cobra.Command {
	return &cobra.Command{
		Use:   "armv6",
		Short: "Run the 32-bit program and unit tests on an emulated ARMv6 processor",
		Long: `Run the program of the package for 32-bit boards, and the unit tests of wire,
election and gpio, on an emulated ARM1176, the processor of a Pi Zero, in user mode:
without a board, and without root. Takes half a minute.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ran, err := trial.ARMv6(c.Context(), o.source)
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), ran)
			}
			return err
		},
	}
}
