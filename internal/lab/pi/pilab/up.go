package pilab

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi"
)

// bootTime bounds the boot of all boards. Three on two processors take 30 to 40
// seconds, and several times that if the machine has something else to do.
const bootTime = 4 * time.Minute

func upCommand(p *options) *cobra.Command {
	var boards int
	var machine, deb string
	var bare bool
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the boards, and install and start topdog on them",
		Long: `Build the image and topdog's package, start the boards, install the package on
each with dpkg, configure the first with "topdog init", give the others its two
files, and start the service. What is there already is left as it is.

The boards go on when the command ends; "down" ends them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := pi.FindMachine(machine)
			if err != nil {
				return usageError{err}
			}
			ctx, out := c.Context(), c.OutOrStdout()
			if err := p.supply().Check(ctx, m); err != nil {
				return err
			}
			image, err := timed(out, "image for "+m.Arch, func() (string, error) { return p.supply().Image(ctx, m.Arch) })
			if err != nil {
				return err
			}
			if !bare && deb == "" {
				deb, err = timed(out, "package for "+m.Package, func() (string, error) {
					return p.supply().Package(ctx, m.Package, "", filepath.Join(p.dir, "packages"))
				})
				if err != nil {
					return err
				}
			}
			l, err := pi.Create(p.dir, m, boards)
			if err != nil {
				return err
			}
			defer l.Close()
			var files []string
			if !bare {
				files = []string{deb}
			}
			if err := start(ctx, out, l, image, files); err != nil || bare {
				return err
			}
			_, err = timed(out, "install and configure topdog", func() (string, error) { return "", install(ctx, l, deb) })
			return err
		},
	}
	c.Flags().IntVar(&boards, "boards", 3, "how `many`")
	c.Flags().StringVar(&machine, "machine", "raspi3b", "QEMU's board: "+strings.Join(pi.MachineNames(), " or "))
	c.Flags().StringVar(&deb, "deb", "", "install this `package` instead of one of the present source")
	c.Flags().BoolVar(&bare, "bare", false, "install nothing")
	return c
}

// start powers all boards on and waits until they have booted.
func start(ctx context.Context, out io.Writer, l *pi.Lab, image string, files []string) error {
	_, err := timed(out, fmt.Sprintf("boot %d boards", l.State.Boards), func() (string, error) {
		if err := l.Flash(image, files...); err != nil {
			return "", err
		}
		for _, b := range l.Boards() {
			if err := b.PowerOn(); err != nil {
				return "", err
			}
		}
		return "", l.Each(func(b *pi.Board) error { return b.WaitReady(ctx, bootTime) })
	})
	return err
}

// install brings topdog to the boards that lack it.
func install(ctx context.Context, l *pi.Lab, deb string) error {
	err := l.Each(func(b *pi.Board) error {
		if _, err := b.Run(ctx, "command -v topdog"); err == nil {
			return nil
		}
		if _, err := b.Run(ctx, "[ -e /root/"+filepath.Base(deb)+" ]"); err != nil {
			return fmt.Errorf("%s has a card without this package: take the lab down first", b.Name())
		}
		return b.InstallPackage(ctx, deb)
	})
	if err != nil {
		return err
	}
	return l.Configure(ctx)
}

// timed says what is being done, and how long it took.
func timed[T any](out io.Writer, what string, do func() (T, error)) (T, error) {
	start := time.Now()
	result, err := do()
	verdict := "ok  "
	if err != nil {
		verdict = "FAIL"
	}
	fmt.Fprintf(out, "%s %s (%.1f s)\n", verdict, what, time.Since(start).Seconds())
	return result, err
}

func downCommand(p *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the boards, and remove their cards and the network",
		Long: `End the lab's boards, exactly these processes, and remove their cards and the
network. Images stay, so that the next "up" is quick. Does nothing if no lab is up.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := pi.Open(p.dir)
			if err == nil {
				return l.Down()
			}
			if isDown(err) {
				fmt.Fprintln(c.OutOrStdout(), err)
				return nil
			}
			return err
		},
	}
}

func imageCommand(p *options) *cobra.Command {
	var machine string
	c := &cobra.Command{
		Use:   "image",
		Short: "Build the image only, and say where it is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := pi.FindMachine(machine)
			if err != nil {
				return usageError{err}
			}
			dir, err := p.supply().Image(c.Context(), m.Arch)
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), dir)
			}
			return err
		},
	}
	c.Flags().StringVar(&machine, "machine", "raspi3b", "QEMU's board: "+strings.Join(pi.MachineNames(), " or "))
	return c
}
