package config

import (
	"fmt"
	"net/netip"

	"topdog/election"
	"topdog/election/silence"
	"topdog/wire"
)

// check looks for values that are right by themselves and wrong together. It
// says nothing about keys that already have a problem.
func (r *reading) check() {
	c := r.cfg
	if _, set := r.keys["address"]; !set && !r.refused["address"] {
		// The place of something missing is the top of the file.
		if len(r.problems) >= maxProblems {
			r.more++
			return
		}
		r.problems = append(r.problems, Problem{
			File: r.file, Line: 1, Column: 1,
			Message: "address is missing: there is nothing to hold",
			Hint:    `add the floating address, an unused one of your network, for example address = "192.168.1.250"`,
		})
	}
	r.checkScore()
	r.checkPatience()
	r.checkVoters()
	r.checkPage()
	if r.refused["address"] || r.refused["peers"] || r.refused["id"] {
		return
	}
	floating := map[netip.Addr]bool{}
	for _, a := range c.Addresses {
		floating[a.IP] = true
	}
	for i, ip := range c.Peers {
		if floating[ip] {
			r.refuse(r.field("peers"), r.values["peers"][i],
				fmt.Sprintf("%s is the floating address, which belongs to no board", ip),
				"write the own addresses of the other boards")
		}
	}
	for i, ip := range c.Witness.Addrs {
		if floating[ip] && !r.refused["witness"] {
			r.refuse(r.field("witness"), r.values["witness"][i],
				fmt.Sprintf("%s is the floating address, which proves nothing: a dead leader has it too", ip),
				"write the address of another host that is always on, such as the router")
		}
	}
	for i, id := range c.Voters {
		if !r.refused["voters"] && floating[id.Addr()] {
			r.refuse(r.field("voters"), r.values["voters"][i],
				fmt.Sprintf("%v is the floating address, which belongs to no board", id),
				"write the own addresses of the voters")
		}
	}
	if c.ID != wire.Nobody && floating[c.ID.Addr()] {
		r.refuse(r.field("id"), r.values["id"][0],
			fmt.Sprintf("%s is the floating address, so every leader would have this id", c.ID.Addr()),
			`write the board's own address, a number, or id = "auto"`)
	}
}

// checkPatience holds the patience against the heartbeat.
func (r *reading) checkPatience() {
	c := r.cfg
	if c.Patience == 0 || r.refused["patience"] || r.refused["heartbeat"] {
		return
	}
	if err := election.CheckPatience(c.Patience, c.Interval); err != nil {
		r.refuse(r.field("patience"), r.values["patience"][0], fmt.Sprintf("%v %v", c.Patience, err),
			fmt.Sprintf(`write a duration from %s, with which nothing is learned, to %s, or "%s", which is %s`,
				tomlText(silence.DefaultGrace(c.Interval)), tomlText(election.MaxPatience), auto, tomlText(silence.DefaultPatience(c.Interval))))
	}
}

// checkScore holds together what the algorithm score alone makes use of. The
// default of score_from may be written with any algorithm, since it claims nothing.
func (r *reading) checkScore() {
	if r.refused["algorithm"] || r.refused["score_from"] || r.refused["score_command"] {
		return
	}
	c := r.cfg
	switch command := len(c.ScoreCommand) > 0; {
	case c.ScoreSource != election.ScoreFromPriority && c.Algorithm != wire.AlgorithmScore:
		r.refuse(r.field("score_from"), r.values["score_from"][0],
			fmt.Sprintf("only the algorithm %q compares scores, and this group runs %q", wire.AlgorithmScore, c.Algorithm),
			"write algorithm = "+tomlText(wire.AlgorithmScore)+" too (on all boards), or delete this line")
	case c.ScoreSource == election.ScoreFromCommand && !command:
		r.refuse(r.field("score_from"), r.values["score_from"][0],
			fmt.Sprintf("%q needs a command that prints the number, and score_command is not set", c.ScoreSource),
			`write for example score_command = "/usr/local/bin/my-score"`)
	case command && c.ScoreSource != election.ScoreFromCommand:
		r.refuse(r.field("score_command"), r.values["score_command"][0],
			fmt.Sprintf("nothing asks for the number that it prints, since score_from is %q", c.ScoreSource),
			fmt.Sprintf("write algorithm = %q and score_from = %q too, or delete this line", wire.AlgorithmScore, election.ScoreFromCommand))
	}
}

// checkVoters holds together the algorithm strict and its voters.
func (r *reading) checkVoters() {
	if r.refused["algorithm"] || r.refused["voters"] {
		return
	}
	voters := r.cfg.Voters
	switch strict := r.cfg.Algorithm == wire.AlgorithmStrict; {
	case strict && len(voters) == 0:
		r.refuse(r.field("algorithm"), r.values["algorithm"][0],
			fmt.Sprintf("%q asks voters, and voters is not set", wire.AlgorithmStrict),
			"write voters = "+r.field("voters").example+" too, with the ids of your voters, the same on all boards")
	case !strict && len(voters) > 0:
		r.refuse(r.field("voters"), r.values["voters"][0],
			fmt.Sprintf("only the algorithm %q has votes, and this group runs %q", wire.AlgorithmStrict, r.cfg.Algorithm),
			"write algorithm = "+tomlText(wire.AlgorithmStrict)+" too (on all boards), or delete this line")
	case strict && len(voters) < MinVoters:
		r.refuse(r.field("voters"), r.values["voters"][len(voters)-1],
			fmt.Sprintf("fewer than %d voters: the loss of one would leave no majority, and nobody could answer", MinVoters),
			"list one more; a `topdog witness` on any other machine is a voter too")
	}
}
