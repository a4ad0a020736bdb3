package console

// Keys is what GET /v1/keys returns: which keys this board and the others accept. A key is named by
// its fingerprint, which tells nothing about it.
type Keys struct {
	SignsWith   string `json:"signs_with"`   // what this board sends; "" if the group has no key
	AlsoAccepts string `json:"also_accepts"` // of other boards; "" if that is all
	RunningNs   int64  `json:"running_ns"`   // since the daemon started: whom it has heard before it does not know
	// Boards are the others that this board has heard within a day, the one that was heard last first.
	Boards []BoardKeys `json:"boards"`
}

// BoardKeys is what one board has told of its keys.
type BoardKeys struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Address     string `json:"address"`
	HeardNs     int64  `json:"heard_ns"`     // since its last message
	Live        bool   `json:"live"`         // it was heard lately, and has not left
	SignsWith   string `json:"signs_with"`   // "" if it has told nothing: its program cannot change keys, or it has just been met
	AlsoAccepts string `json:"also_accepts"` // "" if it accepts no other
}
