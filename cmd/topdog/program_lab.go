//go:build lab

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// program is topdog-lab: the verbs of lab.go, for a machine that is no board.
func program() *cobra.Command {
	root := &cobra.Command{
		Use:   "topdog-lab",
		Short: "Watch and simulate the elections of topdog",
		Long: `topdog-lab shows how topdog elects a leader, without a group and without hardware:
as a demonstration on this machine, and in a simulator with the algorithms of the
literature. The program for boards is topdog.`,
	}
	for _, c := range labCommands() {
		root.AddCommand(renamed(c))
	}
	return root
}

// renamed has the examples of a command, and of those below it, name this program.
func renamed(c *cobra.Command) *cobra.Command {
	c.Example = strings.ReplaceAll(c.Example, "topdog ", "topdog-lab ")
	for _, below := range c.Commands() {
		renamed(below)
	}
	return c
}
