// Package report says what a comparison of topdog with its peers has measured: as
// a table for people, as JSON, and as pictures. It measures nothing.
package report

import "time"

// Report is everything that one session of the bench has measured.
type Report struct {
	Made     string    `json:"made"`    // RFC 3339, the day and time at which the session began
	Form     string    `json:"form"`    // quick or long
	Machine  Machine   `json:"machine"` // where it ran
	Systems  []System  `json:"systems"` // in the order in which tables show them; topdog's first
	Missing  []string  `json:"missing,omitempty"`
	Events   []Event   `json:"events"`
	Failures []Failure `json:"failures,omitempty"` // event after event, run after run
	Calm     []Calm    `json:"calm,omitempty"`
	Checked  []Calm    `json:"checked,omitempty"` // groups whose boards run five checks a second
	Lossy    []Lossy   `json:"lossy,omitempty"`
	Starts   []Start   `json:"starts,omitempty"`
	// Binary is the size of topdog for arm64, static and stripped; 0 if nobody has built it.
	Binary uint64 `json:"arm64_binary_bytes,omitempty"`
}

// Machine is what the figures depend on.
type Machine struct {
	Processors int    `json:"processors"`
	Model      string `json:"model"`
	Memory     uint64 `json:"memory_bytes"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
}

// System is one program in one setting.
type System struct {
	Key     string `json:"key"`     // such as topdog-100ms; what the other tables refer to
	Program string `json:"program"` // topdog, keepalived, ucarp
	Version string `json:"version"`
	// Setting is such as "default" or "10 ms", for people. What a program does when
	// it is told nothing has a setting that begins with the word default.
	Setting  string        `json:"setting"`
	Interval time.Duration `json:"interval_ns"` // between two messages of the leader
	Config   string        `json:"config"`      // of the first board, whole
	// Service is set if each of its boards has a service, at which it looks. It has the events that are about
	// services, and no others.
	Service bool `json:"service,omitempty"`
}

// Event is one of the things that are done to the leader.
type Event struct {
	Key   string `json:"key"`   // such as cable-pulled; see CablePulled and the others
	Title string `json:"title"` // for people
	// Service is set if it is about the boards' service: then the outage is that of the service.
	Service bool `json:"service,omitempty"`
}

// Failure is all runs of one event with one system.
type Failure struct {
	System string `json:"system"`
	Event  string `json:"event"`
	// Unable says why this system has no such event, instead of runs.
	Unable string `json:"unable,omitempty"`
	Runs   []Run  `json:"runs,omitempty"`
}

// Run is one event, and what followed.
type Run struct {
	Outage time.Duration `json:"outage_ns"` // the longest that the client waited for an answer
	// Two is for how long two boards or more had the address while they could
	// hear each other, and None for how long no board had it.
	Two  time.Duration `json:"two_ns"`
	None time.Duration `json:"none_ns"`
	// TwoLasts is set when there still were two holders when the bench stopped
	// waiting: Two is then the least that it can be.
	TwoLasts bool `json:"two_lasts,omitempty"`
	// TwoAnswer is for how long two boards or more answered for the address from one place, if
	// Probed is set: a board may have the address and not answer, and the other way round.
	TwoAnswer time.Duration `json:"two_answer_ns,omitempty"`
	Probed    bool          `json:"probed,omitempty"`
	Moves     int           `json:"moves"` // how often another board became the holder
	// Late is by how much the client itself was late at most: what is less means nothing.
	Late time.Duration `json:"late_ns"`
	// Censored is set when the outage had not ended when the bench stopped waiting.
	Censored bool `json:"censored,omitempty"`
	// RoundTrip is the median time that the client waits for an answer when nothing is wrong.
	RoundTrip time.Duration `json:"round_trip_ns"`
	// Announced is how often the client heard another board than the old leader
	// announce the address. It is counted for BothFrozen only.
	Announced int `json:"announced,omitempty"`
	// Hook is how long after the new leader had the address its script was run. It is measured for Hook only.
	Hook time.Duration `json:"hook_ns,omitempty"`
	// Pages is how long after the fault all open pages have shown the next leader. It is measured for PagesPulled only.
	Pages time.Duration `json:"pages_ns,omitempty"`
}

// Calm is a group that does nothing but its duty.
type Calm struct {
	System   string        `json:"system"`
	Boards   int           `json:"boards"`
	For      time.Duration `json:"for_ns"`
	Packets  uint64        `json:"packets"`
	Bytes    uint64        `json:"bytes"` // with Ethernet's header, without its checksum
	Leader   Cost          `json:"leader"`
	Follower Cost          `json:"follower"` // the mean of all followers
}

// Cost is what a board's processes need, together.
type Cost struct {
	Processor float64 `json:"processor"` // of one core, user and system: 0.01 is 1 %
	RSS       uint64  `json:"rss_bytes"` // the sum over the processes
	PSS       uint64  `json:"pss_bytes"` // the same, with what they share counted once
	Processes int     `json:"processes"`
}

// Lossy is a group on a LAN that loses packets.
type Lossy struct {
	System string        `json:"system"`
	Loss   float64       `json:"loss"` // 0.4 loses 40 % of the packets, at each receiver by itself
	For    time.Duration `json:"for_ns"`
	Moves  int           `json:"moves"` // while nobody failed
	Two    time.Duration `json:"two_ns"`
	// Unanswered is for how long the client heard nobody while nobody failed.
	Unanswered time.Duration `json:"unanswered_ns"`
	// Runs are pulled cables under the same loss.
	Runs []Run `json:"runs,omitempty"`
}

// Start is a cold start: the time from the start of the last daemon to the first answer of the address.
type Start struct {
	System string          `json:"system"`
	Took   []time.Duration `json:"took_ns"`
}
