package wire

import "time"

// goldenKey and goldenGroup are the ones of the example in the package comment.
const goldenGroup = "topdog"

var goldenKey = []byte{
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
}

var goldenNonce = Nonce{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// golden is one packet, spelled out: the hexadecimal digits of each field, and
// its meaning after a semicolon.
type golden struct {
	message Message
	plain   string
	// The authenticated packet is the plain one with the flag 0x80 set, and this tag.
	tag string
	// tail is how many bytes at the end of the plain packet are optional, and first, if it is
	// not 0, how many of them are a tail without the others.
	tail, first int
}

// fromPi3 is the rest of the header in most packets.
const fromPi3 = `
	467e ; group topdog
	0a000003 ; sender 10.0.0.3
	000007 ; term 7
	64 ; priority 100
	1f2e3d4c ; incarnation
	0000002a ; sequence 42
`

// ofPi3 returns the header with what fromPi3 says.
func ofPi3(h Header) Header {
	h.Sender, h.Term, h.Priority, h.Incarnation, h.Sequence = 0x0a000003, 7, 100, 0x1f2e3d4c, 42
	return h
}

// helloOfPi3 is the body of its HELLO, without a tail.
const helloOfPi3 = `
	0a000005 ; following 10.0.0.5
	00000e10 ; age 3600 s
	05dc ; every 1500 ms
	00 ; no flags
	00 ; no wish for a grace
	06 ; name has 6 bytes
	6bc3a4666967 ; name
`

// goldens has every message at least once. The bytes were written down from the
// specification, and the tags computed by another implementation of
// HMAC and HKDF (Python's hmac and hashlib), not by this package.
var goldens = []golden{
	{
		message: Message{
			Header:    ofPi3(Header{Type: TypeHeartbeat, Algorithm: AlgorithmHeir, Leading: true}),
			Heartbeat: Heartbeat{Interval: 100 * time.Millisecond, Number: 41},
		},
		plain: `4141 ; version 2, HEARTBEAT, leading, heir` + fromPi3 + `
			0064 ; interval 100 ms
			00 ; grace: the default
			29 ; number 41
		`,
		tag: "c635cacd1da9f9c14a7820279a4768e4",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig"},
		},
		plain: `4201 ; version 2, HELLO, heir` + fromPi3 + helloOfPi3,
		tag:   "cd7f2f071ceefc62c2fef187eeda283f",
	},
	{
		message: Message{
			Header:   ofPi3(Header{Type: TypeElection, Algorithm: AlgorithmHeir}),
			Election: Election{Suspect: 0x0a000005, Incarnation: 0x1eadbeef, LastHeard: 4711, Round: 3},
		},
		plain: `4301 ; version 2, ELECTION, heir` + fromPi3 + `
			0a000005 ; suspect 10.0.0.5
			1eadbeef ; its incarnation
			00001267 ; last heard 4711
			03 ; round 3
			00 ; may claim
		`,
		tag: "5161311aa32580f97818dccef07dac0d",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeAnswer, Algorithm: AlgorithmScore, Reply: true}),
			Answer: Answer{Leader: 0x0a000005, Incarnation: 0x1eadbeef, LastHeard: 4712, Age: 1250 * time.Microsecond, Round: 3},
		},
		plain: `4423 ; version 2, ANSWER, reply, score` + fromPi3 + `
			0a000005 ; leader 10.0.0.5
			1eadbeef ; its incarnation
			00001268 ; last heard 4712
			000004e2 ; age 1250 µs
			03 ; round 3
		`,
		tag: "99c9925acb7d176b48d7691223658e05",
	},
	{
		message: Message{
			Header:      ofPi3(Header{Type: TypeCoordinator, Algorithm: AlgorithmBully, Leading: true}),
			Coordinator: Coordinator{Coordinator: 0x0a000003, Interval: 65535 * time.Millisecond, Grace: MaxGrace, Number: 255},
		},
		plain: `4542 ; version 2, COORDINATOR, leading, bully` + fromPi3 + `
			0a000003 ; coordinator 10.0.0.3
			ffff ; interval 65535 ms
			ff ; grace 63.488 s
			ff ; number 255
		`,
		tag: "3dc735d5ba385f3e2f8d6828ef4e1bd1",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeResign, Algorithm: AlgorithmHeir}), Resign: Resign{Successor: 0x0a000005}},
		plain: `4601 ; version 2, RESIGN, heir` + fromPi3 + `
			0a000005 ; successor 10.0.0.5
		`,
		tag: "8b49540f87456bf7b09b4f3e7524dd87",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeQuery, Algorithm: AlgorithmMinID}), Query: Query{Purpose: PurposeHandover, Round: 9}},
		plain: `4706 ; version 2, QUERY, minid` + fromPi3 + `
			01 ; purpose: handover
			09 ; round 9
		`,
		tag: "3329685592951181deedf89c10afe246",
	},
	{
		message: Message{
			Header:    ofPi3(Header{Type: TypeChallenge, Algorithm: AlgorithmHeir, Reply: true}),
			Challenge: Challenge{Target: 0x0a000005, Incarnation: 0x1eadbeef, Nonce: goldenNonce},
		},
		plain: `4821 ; version 2, CHALLENGE, reply, heir` + fromPi3 + `
			0a000005 ; target 10.0.0.5
			1eadbeef ; its incarnation
			000102030405060708090a0b0c0d0e0f ; nonce
		`,
		tag: "de198ebb1932cc9615e570113f2c5d86",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeProof, Algorithm: AlgorithmHeir, Reply: true}), Proof: Proof{Nonce: goldenNonce}},
		plain: `4921 ; version 2, PROOF, reply, heir` + fromPi3 + `
			000102030405060708090a0b0c0d0e0f ; nonce
		`,
		tag: "94f310a76795768d9ea7cebcab70ab85",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeHalt, Algorithm: AlgorithmModified}), Halt: Halt{Suspect: 0x0a000005}},
		plain: `4a04 ; version 2, HALT, modified` + fromPi3 + `
			0a000005 ; suspect 10.0.0.5
		`,
		tag: "9b9ae53836f5c0a2ad72161e63c3bc4f",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeStart, Algorithm: AlgorithmAgents}), Round: Round{Number: 12}},
		plain: `4b07 ; version 2, START, agents` + fromPi3 + `
			0000000c ; round 12
		`,
		tag: "8a5547717a95b4c516773d499d93feda",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeAck, Algorithm: AlgorithmAgents}), Round: Round{Number: 12}},
		plain: `4c07 ; version 2, ACK, agents` + fromPi3 + `
			0000000c ; round 12
		`,
		tag: "8d0b35255953c6e7743b1df06357cbf5",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeCollect, Algorithm: AlgorithmAgents}), Round: Round{Number: 12}},
		plain: `4d07 ; version 2, COLLECT, agents` + fromPi3 + `
			0000000c ; round 12
		`,
		tag: "0b87783a83a5608098daad96e0e07acc",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeReport, Algorithm: AlgorithmAgents}),
			Report: Report{Round: 12, Timestamp: 99, Standings: []Standing{{0x0a000003, 100}, {0x0a000005, 254}}},
		},
		plain: `4e07 ; version 2, REPORT, agents` + fromPi3 + `
			0000000c ; round 12
			00000063 ; timestamp 99
			02 ; 2 standings
			0a000003 ; 10.0.0.3
			64 ; its priority 100
			0a000005 ; 10.0.0.5
			fe ; its priority 254
		`,
		tag: "9b2b000a5dfa83ba48574142df5d7900",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeLeader, Algorithm: AlgorithmAgents}), Leader: Leader{Leader: 0x0a000005, Timestamp: 99}},
		plain: `4f07 ; version 2, LEADER, agents` + fromPi3 + `
			0a000005 ; leader 10.0.0.5
			00000063 ; timestamp 99
		`,
		tag: "8988c06274036649202107a12b819001",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypeOK, Algorithm: AlgorithmAgents}), OK: OK{Round: 12, Trust: []ID{0x0a000003, 0x0a000005}}},
		plain: `5007 ; version 2, OK, agents` + fromPi3 + `
			0000000c ; round 12
			02 ; 2 boards are trusted
			0a000003 ; 10.0.0.3
			0a000005 ; 10.0.0.5
		`,
		tag: "2e5ce2f60a4eda6b4f4503844153d818",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmScore}),
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, NoMulticast: true, Grace: 10 * time.Millisecond, Name: "käfig", Score: 70000},
		},
		plain: `4203 ; version 2, HELLO, score` + fromPi3 + `
			0a000005 ; following 10.0.0.5
			00000e10 ; age 3600 s
			05dc ; every 1500 ms
			01 ; hears no multicast
			34 ; wishes 10 ms
			06 ; name has 6 bytes
			6bc3a4666967 ; name
			00011170 ; score 70000
		`,
		tag: "28de66bf4de0724c84e35436cefa5e5c", tail: 4,
	},
	{
		message: Message{
			Header:   ofPi3(Header{Type: TypeElection, Algorithm: AlgorithmScore}),
			Election: Election{Suspect: 0x0a000005, Incarnation: 0x1eadbeef, LastHeard: 4711, Round: 3, NoClaim: true, Score: 70000},
		},
		plain: `4303 ; version 2, ELECTION, score` + fromPi3 + `
			0a000005 ; suspect 10.0.0.5
			1eadbeef ; its incarnation
			00001267 ; last heard 4711
			03 ; round 3
			01 ; may not claim
			00011170 ; score 70000
		`,
		tag: "f557f11b2f2b9f6cc8862a2e5fc1923e", tail: 4,
	},
	{
		message: Message{
			Header:      ofPi3(Header{Type: TypeCoordinator, Algorithm: AlgorithmCandidates, Leading: true}),
			Coordinator: Coordinator{Coordinator: 0x0a000003, Interval: 100 * time.Millisecond, Grace: 76 * time.Millisecond, Number: 41, Score: 70000, Candidates: []ID{0x0a000003, 0x0a000005}},
		},
		plain: `4545 ; version 2, COORDINATOR, leading, candidates` + fromPi3 + `
			0a000003 ; coordinator 10.0.0.3
			0064 ; interval 100 ms
			63 ; grace 19 · 2^6 / 16 = 76 ms
			29 ; number 41
			00011170 ; score 70000
			02 ; 2 candidates
			0a000003 ; 10.0.0.3
			0a000005 ; 10.0.0.5
		`,
		tag: "bd807ff015136ada1002e2de6a554662", tail: 13,
	},
	{
		message: Message{
			Header: Header{Type: TypeRival, Algorithm: AlgorithmHeir, Leading: true, Sender: 0x0a000003, Term: MaxTerm, Priority: 100, Incarnation: MaxIncarnation, Sequence: 42},
			Rival:  Rival{Rival: 0x0a000005, Decision: DecisionYield, Reach: 3, Age: 90061 * time.Millisecond},
		},
		plain: `
			5141 ; version 2, RIVAL, leading, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			ffffff ; term 16777215
			64 ; priority 100
			3fffffff ; incarnation
			0000002a ; sequence 42
			0a000005 ; for 10.0.0.5
			01 ; yield
			03 ; reach 3
			00015fcd ; leads for 90061 ms
		`,
		tag: "4a8be10f444343c1adf88ad9889a4d4a",
	},
	{
		message: Message{
			Header:  ofPi3(Header{Type: TypeSupport, Algorithm: AlgorithmStrict}),
			Support: Support{Leader: 0x0a000005, Incarnation: 0x1eadbeef, Term: 6, Heartbeat: 4711, Voters: 0x33182271},
		},
		plain: `5208 ; version 2, SUPPORT, strict` + fromPi3 + `
			0a000005 ; leader 10.0.0.5
			1eadbeef ; its incarnation
			000006 ; its term 6
			00001267 ; heartbeat 4711
			33182271 ; voters 10.0.0.3, 10.0.0.4, 10.0.0.5
		`,
		tag: "a333844b1ddd2643d1df902a273c0ca5",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeVote, Algorithm: AlgorithmStrict}),
			Vote:   Vote{Ballot: BallotRequest, Number: 9, Interval: 100 * time.Millisecond, Grace: 10 * time.Millisecond, Voters: 0x33182271},
		},
		plain: `5308 ; version 2, VOTE, strict` + fromPi3 + `
			00 ; request
			00000009 ; number 9
			0064 ; interval 100 ms
			34 ; grace 20 · 2^3 / 16 = 10 ms
			33182271 ; voters 10.0.0.3, 10.0.0.4, 10.0.0.5
		`,
		tag: "bbd0ab6915052fdb967c704cd5e23297",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeGrant, Algorithm: AlgorithmStrict}),
			Grant:  Grant{Candidate: 0x0a000005, Incarnation: 0x1eadbeef, Number: 9, Voters: 0x33182271},
		},
		plain: `5408 ; version 2, GRANT, strict` + fromPi3 + `
			0a000005 ; candidate 10.0.0.5
			1eadbeef ; its incarnation
			00000009 ; request 9
			33182271 ; voters 10.0.0.3, 10.0.0.4, 10.0.0.5
		`,
		tag: "09d6e4511ea944b65ae6e3f8220ff943",
	},
	{
		message: Message{
			Header:    Header{Type: TypeHeartbeat, Algorithm: AlgorithmHeir, Leading: true, Sender: 0x0a000003, Term: 7, Priority: 100, Grade: GradeFailing, Incarnation: MaxIncarnation, Sequence: 42},
			Heartbeat: Heartbeat{Interval: 100 * time.Millisecond, Number: 41},
		},
		plain: `
			4141 ; version 2, HEARTBEAT, leading, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			000007 ; term 7
			64 ; priority 100
			ffffffff ; failing, incarnation
			0000002a ; sequence 42
			0064 ; interval 100 ms
			00 ; grace: the default
			29 ; number 41
		`,
		tag: "7a406c94821420c6c96059969040a765",
	},
	{
		message: Message{
			Header: Header{Type: TypeResign, Algorithm: AlgorithmHeir, Sender: 0x0a000003, Term: 7, Priority: 100, Grade: GradeDrained, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Resign: Resign{Successor: 0x0a000005},
		},
		plain: `
			4601 ; version 2, RESIGN, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			000007 ; term 7
			64 ; priority 100
			9f2e3d4c ; drained, incarnation
			0000002a ; sequence 42
			0a000005 ; successor 10.0.0.5
		`,
		tag: "f8847e656265dc5b32be42e238fc804e",
	},
	{
		message: Message{
			Header: Header{Type: TypeHello, Algorithm: AlgorithmHeir, Sender: 0x0a000003, Term: 7, Priority: 100, Grade: GradeProbation, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig"},
		},
		plain: `
			4201 ; version 2, HELLO, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			000007 ; term 7
			64 ; priority 100
			5f2e3d4c ; on probation, incarnation
			0000002a ; sequence 42
		` + helloOfPi3,
		tag: "8f2eba913a639c3c1ec7f0ed495de13f",
	},
	{
		message: Message{Header: ofPi3(Header{Type: TypePause, Algorithm: AlgorithmHeir}), Pause: Pause{Number: 2, Leader: 0x0a000005, Left: time.Hour}},
		plain: `5501 ; version 2, PAUSE, heir` + fromPi3 + `
			00000002 ; number 2
			0a000005 ; leader 10.0.0.5
			0036ee80 ; 3600000 ms left
		`,
		tag: "ab7a1b03a8a72f2f43c1429bda3e0e5c",
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig", Keys: Keys{Signs: 0x030d726e}},
		},
		plain: `4201 ; version 2, HELLO, heir` + fromPi3 + helloOfPi3 + `
			00000000 ; score 0
			030d726e ; signs with the key of this fingerprint
			00000000 ; accepts no other
		`,
		tag: "bdd436692cbfc14ed1df8258cb450131", tail: 12, first: 4,
	},
	{
		message: Message{
			Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmScore}),
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig", Score: 70000, Keys: Keys{Signs: 0x030d726e, Also: 0xcc94506b}},
		},
		plain: `4203 ; version 2, HELLO, score` + fromPi3 + helloOfPi3 + `
			00011170 ; score 70000
			030d726e ; signs with the key of this fingerprint
			cc94506b ; accepts that of this one as well
		`,
		tag: "cbf7359b2713cade9b30d42cee5148d4", tail: 12, first: 4,
	},
}
