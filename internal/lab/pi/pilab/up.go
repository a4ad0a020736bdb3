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

func upCommand(o *options) *cobra.Command {
	var u up
	var machine string
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the boards, and install and start topdog on them",
		Long: `Build the image and topdog's package, start the boards, install the package on
each with dpkg, configure the first with "topdog init", give the others its two
files, and start the service. What is there already is left as it is.

The boards go on when the command ends; "down" ends them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if u.machine, err = pi.FindMachine(machine); err != nil {
				return usageError{err}
			}
			return u.run(c.Context(), c.OutOrStdout(), o)
		},
	}
	c.Flags().IntVar(&u.boards, "boards", 3, "how `many`")
	c.Flags().StringVar(&machine, "machine", "raspi3b", "QEMU's board: "+strings.Join(pi.MachineNames(), " or "))
	c.Flags().StringVar(&u.deb, "deb", "", "install this `package` instead of one of the present source")
	c.Flags().BoolVar(&u.bare, "bare", false, "install nothing")
	return c
}

// up is what the command starts.
type up struct {
	machine pi.Machine
	boards  int
	deb     string // the package; "" stands for one of the present source
	bare    bool   // nothing is installed
}

func (u up) run(ctx context.Context, out io.Writer, o *options) error {
	supply := o.supply()
	if err := supply.Check(ctx, u.machine); err != nil {
		return err
	}
	image, err := timed(out, "image for "+u.machine.Arch, func() (string, error) { return supply.Image(ctx, u.machine.Arch) })
	if err != nil {
		return err
	}
	if !u.bare && u.deb == "" {
		u.deb, err = timed(out, "package for "+u.machine.Package, func() (string, error) {
			return supply.Package(ctx, u.machine.Package, "", filepath.Join(o.dir, "packages"))
		})
		if err != nil {
			return err
		}
	}
	l, err := pi.Create(o.dir, u.machine, u.boards)
	if err != nil {
		return err
	}
	defer l.Close()
	var files []string
	if !u.bare {
		files = []string{u.deb}
	}
	if err := start(ctx, out, l, image, files); err != nil || u.bare {
		return err
	}
	_, err = timed(out, "install and configure topdog", func() (string, error) { return "", install(ctx, l, u.deb) })
	return err
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

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the boards, and remove their cards and the network",
		Long: `End the lab's boards, exactly these processes, and remove their cards and the
network. Images stay, so that the next "up" is quick. Does nothing if no lab is up.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := pi.Open(o.dir)
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

func imageCommand(o *options) *cobra.Command {
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
			dir, err := o.supply().Image(c.Context(), m.Arch)
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), dir)
			}
			return err
		},
	}
	c.Flags().StringVar(&machine, "machine", "raspi3b", "QEMU's board: "+strings.Join(pi.MachineNames(), " or "))
	return c
}
