//go:build board

package main

import "github.com/spf13/cobra"

// program is topdog for the boards. The verbs of lab.go only say where they are.
func program() *cobra.Command {
	root := boardProgram(aboutTopdog + `
Set up the first board:        topdog init 192.168.1.250
Try it without any hardware:   topdog-lab demo (package topdog-lab)`)
	root.AddCommand(elsewhere("demo"), elsewhere("sim"))
	return root
}

// elsewhere returns a verb that says where it is.
func elsewhere(verb string) *cobra.Command {
	return &cobra.Command{
		Use: verb, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return misuse("%[1]s is not in the program for boards: install the package topdog-lab, and run topdog-lab %[1]s; "+
				"or run go run ./cmd/topdog %[1]s in the source", verb)
		},
	}
}
