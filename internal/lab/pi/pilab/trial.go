package pilab

import (
	"os"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi/trial"
)

func testCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "test",
		Short: "Put three boards of their own through everything that happens to a cluster",
		Long: `Boot three boards of their own, and put them through what happens to a cluster:
installation, power cut, cable, crash, clock, upgrade, removal. Takes about four
minutes on two processors. Needs no lab that is up, and disturbs none.

The exit status is 0 if all went as it should. Whatever happens, nothing is left
running.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := os.MkdirAll(o.dir, 0o755); err != nil {
				return err
			}
			return trial.Run(c.Context(), trial.Options{Supply: o.supply(), Out: c.OutOrStdout()})
		},
	}
}
