package demopage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Verb is what can be done to the boards.
type Verb string

// The verbs. Those in the first group are about one board.
const (
	PowerOff Verb = "power_off"
	PowerOn  Verb = "power_on"
	CableOut Verb = "cable_out"
	CableIn  Verb = "cable_in"
	Kill     Verb = "kill"  // the daemon, as SIGKILL does; the board keeps its power
	Stop     Verb = "stop"  // the daemon, in good order, as SIGTERM does
	Start    Verb = "start" // the daemon again
	Freeze   Verb = "freeze"
	Thaw     Verb = "thaw"
	MuteOn   Verb = "mute_on" // the board hears, and is not heard
	MuteOff  Verb = "mute_off"
	DeafOn   Verb = "deaf_on" // the board is heard, and does not hear
	DeafOff  Verb = "deaf_off"
	Resign   Verb = "resign"

	Loss  Verb = "loss"   // all boards lose a share of the packets
	Split Verb = "split"  // the LAN falls in two
	Heal  Verb = "heal"   // the LAN is one, and loses nothing
	AllOn Verb = "all_on" // everything is as it was in the beginning
)

// MaxLoss is the greatest share of packets that may be lost, in per cent.
const MaxLoss = 90

// aboutOne are the verbs that are about one board.
var aboutOne = []Verb{PowerOff, PowerOn, CableOut, CableIn, Kill, Stop, Start, Freeze, Thaw, MuteOn, MuteOff, DeafOn, DeafOff, Resign}

// Verbs are all of them.
func Verbs() []Verb { return append(slices.Clone(aboutOne), Loss, Split, Heal, AllOn) }

// Action is something to be done. Fields that do not belong to its verb are absent.
type Action struct {
	Verb    Verb  `json:"action"`
	Board   int   `json:"board,omitempty"`        // counted from 1
	Percent *int  `json:"loss_percent,omitempty"` // of Loss
	Apart   []int `json:"apart,omitempty"`        // of Split: the boards on the part without the client
}

// ReadAction reads an action that is about so many boards at most. Whatever is not as it should be is an error.
func ReadAction(text []byte, boards int) (Action, error) {
	var a Action
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return a, fmt.Errorf("this is no action: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return a, errors.New("there is something behind the action")
	}
	return a, a.check(boards)
}

// check says what is wrong with an action, if anything.
func (a *Action) check(boards int) error {
	one := slices.Contains(aboutOne, a.Verb)
	switch {
	case !slices.Contains(Verbs(), a.Verb):
		return fmt.Errorf("there is no action %q; there are: %s", a.Verb, verbList())
	case one && (a.Board < 1 || a.Board > boards):
		return fmt.Errorf("%s of board %d: there are the boards 1 to %d", a.Verb, a.Board, boards)
	case !one && a.Board != 0:
		return fmt.Errorf("%s is not about one board", a.Verb)
	case (a.Percent != nil) != (a.Verb == Loss):
		return fmt.Errorf("loss_percent belongs to %s, and to nothing else", Loss)
	case a.Percent != nil && (*a.Percent < 0 || *a.Percent > MaxLoss):
		return fmt.Errorf("a loss of %d %%: must be 0 to %d", *a.Percent, MaxLoss)
	case (a.Apart != nil) != (a.Verb == Split):
		return fmt.Errorf("apart belongs to %s, and to nothing else", Split)
	case a.Verb == Split:
		return checkApart(a.Apart, boards)
	}
	return nil
}

// checkApart looks at the boards that are to be split from the rest. There must be some on both parts.
func checkApart(apart []int, boards int) error {
	seen := map[int]bool{}
	for _, n := range apart {
		if n < 1 || n > boards || seen[n] {
			return fmt.Errorf("%s: %d is no board, or is named twice; there are the boards 1 to %d", Split, n, boards)
		}
		seen[n] = true
	}
	if len(apart) == 0 || len(apart) == boards {
		return fmt.Errorf("%s: name some of the boards, and not all of them", Split)
	}
	return nil
}

func verbList() string {
	var names []string
	for _, v := range Verbs() {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}
