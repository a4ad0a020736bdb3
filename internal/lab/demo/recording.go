package demo

import "time"

// Recording is what happened in a show, for whoever draws it. All times are nanoseconds since
// its beginning, and the lists are in their order.
type Recording struct {
	Command     string `json:"command"`      // which made it
	MachineText string `json:"machine_text"` // what it ran on
	GroundText  string `json:"ground_text"`  // what connected the boards
	// Runs are the outages of each run that was recorded at a time, in all. This is one of them.
	Runs []time.Duration `json:"runs_ns"`

	Algorithm string        `json:"algorithm"`
	Address   string        `json:"address"` // the floating one
	Heartbeat time.Duration `json:"heartbeat_ns"`
	AskEvery  time.Duration `json:"ask_every_ns"` // the client
	Length    time.Duration `json:"length_ns"`

	Boards  []string        `json:"boards"` // their names
	Acts    []RecordedAct   `json:"acts"`
	States  []RecordedState `json:"states"`
	Lights  []RecordedEdge  `json:"lights"`
	Holders []RecordedSpan  `json:"holders"`
	// Gaps are the times after which another board answered, and those in which several
	// questions in a row stayed without an answer.
	Gaps []RecordedGap `json:"gaps"`
	// Paused is the longest time in which the machine did not let the client ask.
	Paused time.Duration `json:"client_paused_ns"`
}

// severalQuestions is how many must stay without an answer to make a gap. A packet or two may be
// late on any machine, and when it is busy the client itself does not ask.
const severalQuestions = 5

// RecordedAct is something that was done to a board.
type RecordedAct struct {
	At    time.Duration `json:"at_ns"`
	Act   string        `json:"act"` // as in the report of the show
	Board string        `json:"board"`
	Text  string        `json:"text"`
	Moves bool          `json:"moves"` // another board leads then
}

// RecordedState is what a board is from a moment on.
type RecordedState struct {
	At      time.Duration `json:"at_ns"`
	Board   string        `json:"board"`
	Role    string        `json:"role"` // as on the screen of the demo
	Plugged bool          `json:"plugged"`
	Running bool          `json:"running"`
}

// RecordedEdge is a change of a light.
type RecordedEdge struct {
	At    time.Duration `json:"at_ns"`
	Board string        `json:"board"`
	On    bool          `json:"on"`
}

// RecordedSpan is a time in which a board had the address.
type RecordedSpan struct {
	Board string        `json:"board"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
}

// RecordedGap is the time between two answers.
type RecordedGap struct {
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Before string        `json:"before"` // who answered last
	After  string        `json:"after"`  // and who answered next
}
