// Package literature has the algorithms that the literature has for electing a leader,
// each written to be read next to its paper. The file of each begins with the paper,
// what it assumes, its steps, its messages, its cost, and what is ours in it:
//
//	bully.go       Garcia-Molina 1982
//	score.go       the same over a score that need not be the id
//	modified.go    Kuang and others: two elections instead of many
//	candidates.go  Murshed and Allen 2012: only the upper half is asked
//	minid.go       Kabashi and others: the smallest id leads, so the next leader is known
//	agents.go      Li, Zhao and Wang: agreement on trusted boards (agents_trust.go),
//	               and a judge who names the leader (agents_judge.go)
//
// What candidates and minid have in common is in initiator.go, and what most do is in
// plain.go. literature.go lists all algorithms, heir of package election among them.
//
// An algorithm gets an election.Board, through which it reads what its board knows and
// acts. It never sees the core. The core calls the methods of election.Algorithm, and
// those of the optional interfaces that an algorithm has. A method is commented with the
// steps of the paper that it is.
package literature
