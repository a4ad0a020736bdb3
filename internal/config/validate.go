package config

import (
	"fmt"
	"net/netip"

	"topdog/election"
	"topdog/election/silence"
	"topdog/wire"
)

// validate refuses values that are right by themselves but wrong together. It
// says nothing about keys that already have a problem.
func (r *reading) validate() {
	const missing, addOne = "address is missing: there is nothing to hold",
		`add the floating address, an unused one of your network, for example address = "192.168.1.250"`
	switch _, set := r.top.keys["address"]; {
	case set || r.top.bad["address"]:
	case r.at != nil:
		r.report(*r.at, missing, addOne)
	case !r.noRoom():
		// The place of something missing is the top of the file.
		r.problems = append(r.problems, Problem{
			File: r.file, Line: 1, Column: 1,
			Message: missing,
			Hint:    addOne,
		})
	}
	r.prefer()
	r.validateAddress()
	r.validateScore()
	r.validatePatience()
	r.validateWatch()
	r.validateVoters()
	r.validateSecondPath()
	r.validateFloating()
}

// anyBad reports whether one of these keys already has a problem.
func (r *reading) anyBad(keys ...string) bool {
	for _, key := range keys {
		if r.top.bad[key] {
			return true
		}
	}
	return false
}

// contradicts reports a problem with the value of a key that the file sets, or with one element of it.
func (r *reading) contradicts(key string, element int, message, hint string) {
	r.top.refuse(key, r.top.values[key][element], message, hint)
}

// validateAddress refuses floating addresses without one of IPv4.
func (r *reading) validateAddress() {
	if r.anyBad("address") || len(r.cfg.Addresses) == 0 || r.cfg.FirstIPv4().IsValid() {
		return
	}
	r.contradicts("address", 0, "an IPv4 address is missing, by which the boards elect and ask who has the address",
		fmt.Sprintf("add an unused IPv4 address of the network, for example address = %s",
			QuoteAll([]string{"192.168.1.250", r.cfg.Addresses[0].String()})))
}

// validatePatience compares the patience with the heartbeat.
func (r *reading) validatePatience() {
	c := r.cfg
	if c.Patience == 0 || r.anyBad("patience", "heartbeat") {
		return
	}
	if err := election.CheckPatience(c.Patience, c.Interval); err != nil {
		r.contradicts("patience", 0, fmt.Sprintf("%v %v", c.Patience, err),
			fmt.Sprintf(`write a duration from "%v", with which nothing is learned, to "%v", or "%s", which is "%v"`,
				silence.DefaultGrace(c.Interval), election.MaxPatience, auto, silence.DefaultPatience(c.Interval)))
	}
}

// validateWatch compares the time between two questions to the address with the heartbeat.
func (r *reading) validateWatch() {
	c := r.cfg
	if c.Watch == 0 || c.Watch == election.NoWatch || r.anyBad("watch", "heartbeat") {
		return
	}
	if err := election.CheckWatch(c.Watch, c.Interval); err != nil {
		r.contradicts("watch", 0, fmt.Sprintf("%v %v", c.Watch, err),
			fmt.Sprintf(`write a duration from "%v" to "%v", "%s", or "%s", which is "%v"`,
				election.MinWatch, c.Interval/2, off, auto, election.DefaultWatch(c.Interval)))
	}
}

// validateScore refuses the keys of the algorithm score with another algorithm, and score_from without
// its command. The default of score_from may be written with any algorithm, since it asks for nothing.
func (r *reading) validateScore() {
	if r.anyBad("algorithm", "score_from", "score_command") {
		return
	}
	c := r.cfg
	switch command := len(c.ScoreCommand) > 0; {
	case c.ScoreSource != election.ScoreFromPriority && c.Algorithm != wire.AlgorithmScore:
		r.contradicts("score_from", 0,
			fmt.Sprintf("only the algorithm %q compares scores, and this group runs %q", wire.AlgorithmScore, c.Algorithm),
			"write algorithm = "+Quote(wire.AlgorithmScore.String())+" too (on all boards), or delete this line")
	case c.ScoreSource == election.ScoreFromCommand && !command:
		r.contradicts("score_from", 0,
			fmt.Sprintf("%q needs a command that prints the number, and score_command is not set", c.ScoreSource),
			`write for example score_command = "/usr/local/bin/my-score"`)
	case command && c.ScoreSource != election.ScoreFromCommand:
		r.contradicts("score_command", 0,
			fmt.Sprintf("nothing asks for the number that it prints, since score_from is %q", c.ScoreSource),
			fmt.Sprintf("write algorithm = %q and score_from = %q too, or delete this line",
				wire.AlgorithmScore, election.ScoreFromCommand))
	}
}

// validateVoters refuses the algorithm strict without enough voters, and voters without it.
func (r *reading) validateVoters() {
	if r.anyBad("algorithm", "voters") {
		return
	}
	voters := r.cfg.Voters
	switch strict := r.cfg.Algorithm == wire.AlgorithmStrict; {
	case strict && len(voters) == 0:
		r.contradicts("algorithm", 0,
			fmt.Sprintf("%q asks voters, and voters is not set", wire.AlgorithmStrict),
			"write voters = "+find(r.top.settings, "voters").example+" too, with the ids of your voters, the same on all boards")
	case !strict && len(voters) > 0:
		r.contradicts("voters", 0,
			fmt.Sprintf("only the algorithm %q has votes, and this group runs %q", wire.AlgorithmStrict, r.cfg.Algorithm),
			"write algorithm = "+Quote(wire.AlgorithmStrict.String())+" too (on all boards), or delete this line")
	case strict && len(voters) < MinVoters:
		r.contradicts("voters", len(voters)-1,
			fmt.Sprintf("fewer than %d voters: the loss of one would leave no majority, and nobody could answer", MinVoters),
			"list one more; a `topdog witness` on any other machine is a voter too")
	}
}

// validateSecondPath refuses a second path with an algorithm that does not know of it.
func (r *reading) validateSecondPath() {
	a := r.cfg.Algorithm
	if r.cfg.SecondInterface != "" && a != wire.AlgorithmHeir && a != wire.AlgorithmStrict && !r.anyBad("algorithm", "interface") {
		r.contradicts("interface", 1, fmt.Sprintf("only the algorithms %q and %q have a second path, and this group runs %q", wire.AlgorithmHeir, wire.AlgorithmStrict, a),
			"keep one interface, or delete the line of the algorithm")
	}
}

// validateFloating refuses a floating address as the address of a board or of another host.
func (r *reading) validateFloating() {
	c := r.cfg
	refuse := func(key string, addrs []netip.Addr, why, hint string) {
		if r.anyBad(key) {
			return
		}
		for i, addr := range addrs {
			if group, whose := r.floating(addr); group != nil {
				r.contradicts(key, i, fmt.Sprintf("%s is %s, %s", addr, whose, why), hint)
			}
		}
	}
	var voters []netip.Addr
	for _, id := range c.Voters {
		voters = append(voters, id.Addr())
	}
	refuse("peers", c.Peers, "which belongs to no board", "write the own addresses of the other boards")
	refuse("witness", c.Witness.Addrs, "which proves nothing: a dead leader has it too",
		"write the address of another host that is always on, such as the router")
	refuse("voters", voters, "which belongs to no board", "write the own addresses of the voters")
	refuse("id", []netip.Addr{c.ID.Addr()}, "so every leader would have this id",
		`write the board's own address, a number, or id = "auto"`)
	refuse("page_listen", []netip.Addr{c.PageListen.Addr}, "which this board has only while it leads",
		"write "+Quote(Listen{Port: c.PageListen.Port}.String())+
			": then the page of the leader answers there, and each page at its own address")
}

// isFloating reports whether addr is one of the floating addresses.
func (c *Config) isFloating(addr netip.Addr) bool {
	for _, a := range c.Addresses {
		if a.IP == addr.Unmap().WithZone("") {
			return true
		}
	}
	return false
}
