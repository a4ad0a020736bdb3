package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"topdog/election/literature"
	"topdog/internal/lab/demo"
)

func demoCommand() *cobra.Command {
	options := demo.Options{Boards: demo.DefaultBoards, Heartbeat: demo.DefaultHeartbeat}
	algorithm := literature.Algorithms()[0]
	var script, asJSON bool
	var page *pageFlag
	c := &cobra.Command{
		Use:   "demo",
		Short: "Watch a few boards elect a leader, without any hardware",
		Long: `Run a few boards in this process, with the real election over real UDP on
loopback, and a client that asks every millisecond who answers at the floating
address. It needs no root and no hardware, and changes nothing on this machine.

On a terminal it draws the boards. You pull their cables or cut their power, and
see for how long the client gets no answer. Without a terminal, or with --script,
it plays a show of about eight seconds, and its exit status is 1 if something went
wrong. The show is longer with an algorithm that elects slowly.

With --page it prints the URL of a page, and serves that until it is ended. There you
do everything to the boards that can happen to them, and see what follows.`,
		Example: `  topdog demo
  topdog demo --page
  topdog demo --page :8080
  topdog demo --script
  topdog demo --algorithm minid
  sudo topdog demo --netns`,
		RunE: func(c *cobra.Command, _ []string) error {
			var ok bool
			if options.Algorithm, ok = literature.AlgorithmNamed(algorithm); !ok {
				return usageError{fmt.Errorf("--algorithm: there is no algorithm %q; there are: %s", algorithm, strings.Join(literature.Algorithms(), ", "))}
			}
			if err := options.Validate(); err != nil {
				return usageError{err}
			}
			if page.given() {
				if script || asJSON {
					return usageError{errors.New("--page is a page, and --script and --json are a show: choose one")}
				}
				return demo.Page(c.Context(), options, page.listen, []string{"/proc/self/exe", demoPageWord}, c.OutOrStdout())
			}
			out := c.OutOrStdout()
			if screen, ok := out.(*os.File); ok && !script && !asJSON && canDraw(os.Stdin, screen) {
				return demo.Live(c.Context(), options, os.Stdin, screen)
			}
			err := demo.Play(c.Context(), options, out, asJSON)
			if err != nil && c.Context().Err() != nil {
				return exitStatus(exitFailure) // whoever interrupted it knows why
			}
			return err
		},
	}
	f := c.Flags()
	f.IntVar(&options.Boards, "boards", options.Boards, fmt.Sprintf("how many boards, %d to %d", demo.MinBoards, demo.MaxBoards))
	f.DurationVar(&options.Heartbeat, "heartbeat", options.Heartbeat, "the time between two heartbeats of the leader")
	f.StringVar(&algorithm, "algorithm", algorithm, "how the leader is elected: "+strings.Join(literature.Algorithms(), ", "))
	f.BoolVar(&options.Namespaces, "netns", false, "real cables between network namespaces and a real address; needs root")
	f.BoolVar(&script, "script", false, "play the show, also on a terminal")
	page = addPageFlag(c, "serve the demonstration as a page")
	f.BoolVar(&asJSON, "json", false, "play the show, and print what happened as JSON")
	completeFlag(c, "algorithm", literature.Algorithms)
	return c
}

// canDraw reports whether there is somebody to look at a picture and to press keys.
func canDraw(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}
