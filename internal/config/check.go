package config

import (
	"fmt"
	"net/netip"
)

// loopback is the interface on which, and only on which, addresses of
// 127.0.0.0/8 make sense: for trying several daemons on one machine.
const loopback = "lo"

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
	r.checkMeasure()
	if r.refused["address"] || r.refused["interface"] || r.refused["peers"] || r.refused["id"] {
		return
	}
	floating := map[netip.Addr]bool{}
	for i, a := range c.Addresses {
		floating[a.IP] = true
		r.checkLoopback("address", i, a.IP)
	}
	for i, ip := range c.Peers {
		r.checkLoopback("peers", i, ip)
		if floating[ip] {
			r.refuse(r.field("peers"), r.values["peers"][i],
				fmt.Sprintf("%s is the floating address, which belongs to no board", ip),
				"write the own addresses of the other boards")
		}
	}
	if c.ID != AutoID {
		ip := netip.AddrFrom4([4]byte{byte(c.ID >> 24), byte(c.ID >> 16), byte(c.ID >> 8), byte(c.ID)})
		if floating[ip] {
			r.refuse(r.field("id"), r.values["id"][0],
				fmt.Sprintf("%s is the floating address, so every leader would have this id", ip),
				`write the board's own address, a number, or id = "auto"`)
		}
	}
}

// checkMeasure holds together what the algorithm score alone makes use of. The
// default of measure may be written with any algorithm, since it claims nothing.
func (r *reading) checkMeasure() {
	if r.refused["algorithm"] || r.refused["measure"] || r.refused["score_command"] {
		return
	}
	c := r.cfg
	switch command := len(c.ScoreCommand) > 0; {
	case c.Measure != r.opts.measures()[0] && c.Algorithm != algorithmScore:
		r.refuse(r.field("measure"), r.values["measure"][0],
			fmt.Sprintf("only the algorithm %q has a measure, and this group runs %q", algorithmScore, c.Algorithm),
			"write algorithm = "+tomlString(algorithmScore)+" too (on all boards), or delete this line")
	case c.Measure == measureCommand && !command:
		r.refuse(r.field("measure"), r.values["measure"][0],
			fmt.Sprintf("%q needs a command that prints the number, and score_command is not set", measureCommand),
			`write for example score_command = "/usr/local/bin/my-score"`)
	case command && c.Measure != measureCommand:
		r.refuse(r.field("score_command"), r.values["score_command"][0],
			fmt.Sprintf("nothing asks for the number that it prints, since measure is %q", c.Measure),
			fmt.Sprintf("write algorithm = %q and measure = %q too, or delete this line", algorithmScore, measureCommand))
	}
}

func (r *reading) checkLoopback(key string, i int, ip netip.Addr) {
	if !ip.IsLoopback() || r.cfg.Interface == loopback {
		return
	}
	r.refuse(r.field(key), r.values[key][i],
		fmt.Sprintf("%s is a loopback address, which no other board can reach", ip),
		`to try topdog on one machine write interface = "lo" too; otherwise write an address of your network`)
}
