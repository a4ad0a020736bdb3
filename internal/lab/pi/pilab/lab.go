package pilab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi"
)

// lockTime is how long "up" waits for another one to finish.
const lockTime = 5 * time.Second

// machineFlag gives a command the flag --machine.
func machineFlag(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "machine", "raspi3b", "QEMU's board: "+strings.Join(pi.MachineNames(), " or "))
}

// up is what the command starts.
type up struct {
	*options
	machine string
	boards  int
	deb     string // the package; "" stands for one of the present source
	bare    bool   // nothing is installed
}

func (o *options) upCommand() *cobra.Command {
	u := up{options: o}
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the boards, and install and start topdog on them",
		Long: `Build the image and topdog's package, start the boards, install the package on
each with dpkg, configure the first with "topdog init", give the others its two
files, and start the service. What is there already is left as it is.

The boards go on when the command ends; "down" ends them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return u.run(c.Context(), c.OutOrStdout()) },
	}
	c.Flags().IntVar(&u.boards, "boards", 3, "how `many`")
	machineFlag(c, &u.machine)
	c.Flags().StringVar(&u.deb, "deb", "", "install this `package` instead of one of the present source")
	c.Flags().BoolVar(&u.bare, "bare", false, "install nothing")
	return c
}

func (u *up) run(ctx context.Context, out io.Writer) error {
	machine, err := pi.FindMachine(u.machine)
	if err != nil {
		return usageError{err}
	}
	supply := u.supply()
	if err := supply.Check(ctx); err != nil {
		return err
	}
	var image string
	err = timed(out, "image for "+machine.Arch, func() (err error) {
		image, err = supply.Image(ctx, machine)
		return err
	})
	if err == nil && !u.bare && u.deb == "" {
		err = timed(out, "package for "+machine.Package, func() (err error) {
			u.deb, err = supply.Package(ctx, machine, "", filepath.Join(u.dir, "packages"))
			return err
		})
	}
	if err != nil {
		return err
	}
	lock, err := pi.Lock(filepath.Join(u.dir, "lock"), lockTime)
	if err != nil {
		return err
	}
	defer lock.Close()
	l, err := pi.Create(u.dir, machine, u.boards)
	if err != nil {
		return err
	}
	defer l.Close()
	var files []string
	if !u.bare {
		files = []string{u.deb}
	}
	err = timed(out, fmt.Sprintf("boot %d boards", u.boards), func() error { return l.Boot(ctx, image, files...) })
	if err != nil || u.bare {
		return err
	}
	return timed(out, "install and configure topdog", func() error { return install(ctx, l, u.deb) })
}

// install brings topdog to the boards that lack it.
func install(ctx context.Context, l *pi.Lab, deb string) error {
	limited, cancel := context.WithTimeout(ctx, pi.CommandTime)
	defer cancel()
	err := l.Each(func(b *pi.Board) error {
		_, err := b.Run(limited, fmt.Sprintf("command -v topdog || "+
			"{ [ -e %[1]s ] || echo 'the card lacks this package: take the lab down first'; dpkg --install %[1]s; }", "/root/"+filepath.Base(deb)))
		return err
	})
	if err != nil {
		return err
	}
	return l.Configure(ctx)
}

// timed says what is being done, and how long it took.
func timed(out io.Writer, what string, do func() error) error {
	start := time.Now()
	err := do()
	verdict := "ok  "
	if err != nil {
		verdict = "FAIL"
	}
	fmt.Fprintf(out, "%s %s (%.1f s)\n", verdict, what, time.Since(start).Seconds())
	return err
}

func (o *options) imageCommand() *cobra.Command {
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
			dir, err := o.supply().Image(c.Context(), m)
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), dir)
			}
			return err
		},
	}
	machineFlag(c, &machine)
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
			ran, err := o.supply().ARMv6(c.Context())
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), ran)
			}
			return err
		},
	}
}

// labCommands are those about a lab that is up.
func (o *options) labCommands() []*cobra.Command {
	run := &cobra.Command{
		Use:     "exec PROGRAM...",
		Short:   "Run a program of this machine on the boards' LAN",
		Example: "  scripts/pilab exec ping -c 3 10.99.0.250",
		Args:    cobra.MinimumNArgs(1),
		RunE: o.onLab(func(c *cobra.Command, l *pi.Lab, args []string) error {
			return l.Segment.Do(func() error {
				cmd := exec.CommandContext(c.Context(), args[0], args[1:]...)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
				return cmd.Run()
			})
		}),
	}
	run.Flags().SetInterspersed(false)
	return []*cobra.Command{
		{
			Use:   "status",
			Short: "Show power, cable and light of each board, and who has the address",
			Long: `Show power, cable and light of each board, and who has the address. All of it is
seen from outside: the lights in the registers of the emulated chips, for 4.5 s, the
address by asking the LAN. What topdog itself says: pilab sh N topdog status`,
			Args: cobra.NoArgs,
			RunE: o.onLab(func(c *cobra.Command, l *pi.Lab, _ []string) error {
				return showStatus(c.Context(), c.OutOrStdout(), l)
			}),
		},
		{
			Use:   "down",
			Short: "End the boards, and remove their cards and the network",
			Long: `End the lab's boards, exactly these processes, and remove their cards and the
network. Images stay, so that the next "up" is quick. Does nothing if no lab is up.`,
			Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				l, err := pi.Open(o.dir)
				if errors.Is(err, pi.ErrDown) {
					fmt.Fprintln(c.OutOrStdout(), err)
					return nil
				}
				if err != nil {
					return err
				}
				return l.Down()
			},
		},
		run,
	}
}

func showStatus(ctx context.Context, out io.Writer, l *pi.Lab) error {
	s, err := l.Stage(ctx, pi.AskEvery)
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := s.Look()
	if err != nil {
		return err
	}
	var names []string
	for _, n := range v.Holders {
		names = append(names, fmt.Sprintf("pi%d", n))
	}
	if len(names) == 0 {
		names = []string{"nobody"}
	}
	fmt.Fprintf(out, "%s is answered for by %s; namespace %s\n\n", pi.Floating, strings.Join(names, " and "), l.SegmentName())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BOARD\tADDRESS\tPOWER\tCABLE\tLIGHT")
	for _, b := range l.Boards {
		power, cable, light := "on", "in", ""
		switch {
		case !b.On():
			power = "off"
		case !b.Ready():
			power = "booting"
		}
		if !b.Plugged() {
			cable = "out"
		}
		if w, on := v.Lights[b.N]; on {
			light = fmt.Sprintf("%s: %s", b.Light(), w)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", b.Name(), b.Address(), power, cable, light)
	}
	return table.Flush()
}
