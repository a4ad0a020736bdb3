//go:build !board && !lab

package main

import "github.com/spf13/cobra"

// program is topdog with all verbs, as `go build` makes it. The release has two programs instead (scripts/release-build):
// topdog for the boards, where most of a program is in memory, and topdog-lab with the verbs that no board needs.
func program() *cobra.Command {
	root := boardProgram(aboutTopdog + `
Try it without any hardware:   topdog demo
Set up the first board:        topdog init 192.168.1.250`)
	root.AddCommand(labCommands()...)
	return root
}
