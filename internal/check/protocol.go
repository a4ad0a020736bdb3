package check

import "net/netip"

// Order is all that a checker has to know. Each replaces the one before. A check that is in both
// goes on as it is.
type Order struct {
	Checks    []Check      `json:"checks"`
	Score     []string     `json:"score,omitempty"`      // the score command: a program and its arguments; none for no score
	Leading   bool         `json:"leading"`              // this board leads
	Floating  []netip.Addr `json:"floating"`             // the addresses that checks must not be aimed at
	Interface string       `json:"interface"`            // of the group, where the gateway is
	NoGateway string       `json:"no_gateway,omitempty"` // why the gateway cannot be asked; Process.Send enters it
	Once      bool         `json:"once,omitempty"`       // each check is run once; such an order is the only one
}

// Idle reports whether there is nothing to run.
func (o *Order) Idle() bool { return len(o.Checks) == 0 && len(o.Score) == 0 }

// Report tells of one check that its state has changed, or why it fails; or of a run of the score command. One with
// neither only says that the checker runs.
type Report struct {
	ID      string `json:"id,omitempty"`
	Passing bool   `json:"passing,omitempty"`
	Text    string `json:"text,omitempty"` // why it fails
	Score   *Score `json:"score,omitempty"`
	// Misaimed says that the check is aimed at a floating address, so that its result means nothing.
	Misaimed bool `json:"misaimed,omitempty"`
}
