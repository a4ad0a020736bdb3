package scene

import (
	"errors"
	"net/netip"
	"slices"
	"time"
)

// Stage is where scenes are played. Boards have the numbers from 1. Machines without topdog have others: see Client.
type Stage interface {
	// Machines are all that have a cable, by number.
	Machines() []int
	// Start starts the daemon of a board, after an earlier one has ended, with lines of configuration beside those of the stage.
	Start(board int, config []string) error
	// Signal sends a signal to processes of a board.
	Signal(board int, to Processes, s Signal) error
	// Cable pulls the cable of a board, or puts it back.
	Cable(board int, in bool) error
	// Filter has the switch lose frames. These filters take the place of those before.
	Filter(filters []Filter) error
	// Holders are the boards whose kernels have the address.
	Holders() []int
	// State is what a board says of itself.
	State(board int) (State, error)
	// Answers reports whether a board answers at the address.
	Answers(board int) bool
	// Mark forgets what has happened to the address, and Seen tells what has happened since.
	Mark()
	Seen() (moves int, two bool)
	// Pass lets time pass, and Now is how much has passed since the stage was set. Until lets time pass until nothing is missing, and
	// returns what is missing still when the time is over: where time is virtual, that which is given.
	Pass(d time.Duration)
	Now() time.Duration
	Until(limit time.Duration, missing func() string) string
}

// These are what only some stages can do.
type (
	// Configurable is a stage whose boards have a configuration that can be changed while they run.
	Configurable interface {
		// Address is that of a board.
		Address(board int) netip.Addr
		// Set changes settings of a board that runs.
		Set(board int, config []string) error
	}
	// Commandable is a stage whose boards have the command topdog. It is an error if it refuses.
	Commandable interface {
		Topdog(board int, args []string) (said string, err error)
	}
	// Logging is a stage whose boards have a log. On others, nobody asks for what is logged.
	Logging interface {
		Logged(board int, text string) bool
	}
	// Powered is a stage whose boards have a power plug. On others, a board without power has no processes.
	Powered interface {
		Power(board int, on bool) error
	}
	// Late is a stage on a machine that may be late. Recover has a board lead again that should lead before the scene begins.
	Late interface {
		Recover(board int)
	}
	// Attentive is a stage that wants to know what happens before it does.
	Attentive interface {
		Happens(what string)
	}
	// Measuring is a stage on which something is measured, and Measured ends that.
	Measuring interface {
		Measure(name, title string) error
		Measured() error
	}
	// Naming is a stage that knows boards by names of its own.
	Naming interface {
		Named(name string) (boards []int, known bool)
	}
	// Extended is a stage with lines of its own.
	Extended interface {
		// Line does what a line says, and reports whether it knows it.
		Line(words, quoted []string) (known bool, err error)
	}
	// Equipped is a stage whose boards have lines of their own.
	Equipped interface {
		// Do does what the words after the boards of a line say, or waits until it holds: within a time, or at once if that is 0.
		// It reports whether it knows them.
		Do(boards []int, within time.Duration, words, quoted []string) (known bool, err error)
	}
)

// ErrCannot is the error of a stage that does not have what a line is about.
var ErrCannot = errors.New("this stage cannot do that")

// Client is the machine that asks at the address. Machine1 is another one, and lower numbers are further ones.
const (
	Client   = 0
	Machine1 = -1
)

// Processes are some of the processes of a board.
type Processes uint8

// The daemon, the privileged holder that it has, and both.
const (
	Daemon Processes = 1 << iota
	Holder
	Everything = Daemon | Holder
)

// Signal is what a process is sent.
type Signal uint8

// The signals: SIGKILL, SIGTERM, SIGSTOP and SIGCONT.
const (
	Kill Signal = iota
	Terminate
	Freeze
	Thaw
)

// Filter is something that the switch does not pass. A frame that several filters are about must pass all of them.
type Filter struct {
	// From and To are the senders and the receivers; nil for all machines.
	From, To []int
	// Multicast filters no other frames, and Election none but those of what the boards say to each other.
	Multicast, Election bool
	// Share of the frames is lost, by chance; 0 for all of them.
	Share float64
}

// State is what a board says of itself.
type State struct {
	Role, Grade string
	Leader      string // its name
	Holding     bool   // the board has the address
	Reason      string // of its last change
	// Sees has the grades of the boards, by name.
	Sees map[string]string
	// Problems are nil on a stage whose boards tell none.
	Problems []string
}

// Lost reports whether filters lose a frame of the boards' election. draw draws a number from 0 to 1.
func Lost(filters []Filter, from, to int, multicast bool, draw func() float64) bool {
	has := func(list []int, n int) bool { return list == nil || slices.Contains(list, n) }
	return slices.ContainsFunc(filters, func(f Filter) bool {
		return has(f.From, from) && has(f.To, to) && (multicast || !f.Multicast) && (f.Share == 0 || draw() < f.Share)
	})
}
