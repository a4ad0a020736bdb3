package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"topdog/internal/lab/papers"
)

func simTablesCommand() *cobra.Command {
	var asJSON, asCSV bool
	c := &cobra.Command{
		Use:   "tables",
		Short: "Measure the tables of the literature again",
		Long: `Run the algorithms of the papers in the simulator, and print every table and example
of the papers as measured. "=" means that the paper prints the same figure, "≠" that
it prints another one. Columns without either are not in the paper.

The exit status is 1 if a figure differs.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			tables, err := papers.All()
			if err != nil {
				return fmt.Errorf("cannot measure: %w", err)
			}
			switch out := c.OutOrStdout(); {
			case asJSON:
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				err = e.Encode(tables)
			case asCSV:
				err = papers.CSV(out, tables)
			default:
				err = papers.Text(out, tables)
			}
			if err != nil {
				return err
			}
			if compared, different := papers.Tally(tables); different > 0 {
				return fmt.Errorf("%d of %d published figures came out differently", different, compared)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&asCSV, "csv", false, "print CSV, a line for each figure")
	c.MarkFlagsMutuallyExclusive("json", "csv")
	return c
}
