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
	// tail is how many bytes at the end of the plain packet are optional.
	tail int
}

// goldens has every message at least once. The bytes were written down from the
// specification, and the tags computed by another implementation of
// HMAC and HKDF (Python's hmac and hashlib), not by this package.
var goldens = []golden{
	{
		message: Message{
			Header:    Header{Type: TypeHeartbeat, Algorithm: AlgorithmHeir, Leading: true, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Heartbeat: Heartbeat{Interval: 100 * time.Millisecond, Number: 41},
		},
		plain: `
			21 ; version 1, HEARTBEAT
			41 ; leading, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0064 ; interval 100 ms
			29 ; number 41
		`,
		tag: "1a487e2671f5b8edf4d1f76724a2ee8a",
	},
	{
		message: Message{
			Header: Header{Type: TypeHello, Algorithm: AlgorithmHeir, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig"},
		},
		plain: `
			22 ; version 1, HELLO
			01 ; heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; following 10.0.0.5
			00000e10 ; age 3600 s
			05dc ; every 1500 ms
			06 ; name has 6 bytes
			6bc3a4666967 ; name
		`,
		tag: "5e607e1ae81c671ab597b48464efefb7",
	},
	{
		message: Message{
			Header:   Header{Type: TypeElection, Algorithm: AlgorithmHeir, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Election: Election{Suspect: 0x0a000005, Incarnation: 0xdeadbeef, LastHeard: 4711, Round: 3},
		},
		plain: `
			23 ; version 1, ELECTION
			01 ; heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; suspect 10.0.0.5
			deadbeef ; its incarnation
			00001267 ; last heard 4711
			03 ; round 3
		`,
		tag: "c1facb45318a66ac3be8a9c8a7ac363d",
	},
	{
		message: Message{
			Header: Header{Type: TypeAnswer, Algorithm: AlgorithmScore, Reply: true, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Answer: Answer{Leader: 0x0a000005, Incarnation: 0xdeadbeef, LastHeard: 4712, Age: 1250 * time.Microsecond, Round: 3},
		},
		plain: `
			24 ; version 1, ANSWER
			23 ; reply, score
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; leader 10.0.0.5
			deadbeef ; its incarnation
			00001268 ; last heard 4712
			000004e2 ; age 1250 µs
			03 ; round 3
		`,
		tag: "52e7d20b81f1335624c8ac55b9224a06",
	},
	{
		message: Message{
			Header:      Header{Type: TypeCoordinator, Algorithm: AlgorithmBully, Leading: true, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Coordinator: Coordinator{Coordinator: 0x0a000003, Interval: 65535 * time.Millisecond, Number: 255},
		},
		plain: `
			25 ; version 1, COORDINATOR
			42 ; leading, bully
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000003 ; coordinator 10.0.0.3
			ffff ; interval 65535 ms
			ff ; number 255
		`,
		tag: "253aa7a3ce383a7057ce5c9bac85742b",
	},
	{
		message: Message{
			Header: Header{Type: TypeResign, Algorithm: AlgorithmHeir, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Resign: Resign{Successor: 0x0a000005},
		},
		plain: `
			26 ; version 1, RESIGN
			01 ; heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; successor 10.0.0.5
		`,
		tag: "bdb4d543fd6498802d5d558133c633c9",
	},
	{
		message: Message{
			Header: Header{Type: TypeQuery, Algorithm: AlgorithmMinID, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Query:  Query{Purpose: PurposeHandover, Round: 9},
		},
		plain: `
			27 ; version 1, QUERY
			06 ; minid
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			01 ; purpose: handover
			09 ; round 9
		`,
		tag: "0123df8a4290b7b06aff8439ce7750e7",
	},
	{
		message: Message{
			Header:    Header{Type: TypeChallenge, Algorithm: AlgorithmHeir, Reply: true, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Challenge: Challenge{Target: 0x0a000005, Incarnation: 0xdeadbeef, Nonce: goldenNonce},
		},
		plain: `
			28 ; version 1, CHALLENGE
			21 ; reply, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; target 10.0.0.5
			deadbeef ; its incarnation
			000102030405060708090a0b0c0d0e0f ; nonce
		`,
		tag: "ecf5fe83109853c5f36c3e4f6f76bb8f",
	},
	{
		message: Message{
			Header: Header{Type: TypeProof, Algorithm: AlgorithmHeir, Reply: true, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Proof:  Proof{Nonce: goldenNonce},
		},
		plain: `
			29 ; version 1, PROOF
			21 ; reply, heir
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			000102030405060708090a0b0c0d0e0f ; nonce
		`,
		tag: "e2e7a9d570426208bd4f0628570257e4",
	},
	{
		message: Message{
			Header: Header{Type: TypeHalt, Algorithm: AlgorithmModified, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Halt:   Halt{Suspect: 0x0a000005},
		},
		plain: `
			2a ; version 1, HALT
			04 ; modified
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; suspect 10.0.0.5
		`,
		tag: "03acba9af01eff765e16d944657d4075",
	},
	{
		message: Message{
			Header: Header{Type: TypeStart, Algorithm: AlgorithmAgents, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Round:  Round{Number: 12},
		},
		plain: `
			2b ; version 1, START
			07 ; agents
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0000000c ; round 12
		`,
		tag: "fce90dc0597ff59a43726df54b35ed64",
	},
	{
		message: Message{
			Header: Header{Type: TypeAck, Algorithm: AlgorithmAgents, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Round:  Round{Number: 12},
		},
		plain: `
			2c ; version 1, ACK
			07 ; agents
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0000000c ; round 12
		`,
		tag: "01c6974f686b07ef1c1cc048b6e32786",
	},
	{
		message: Message{
			Header: Header{Type: TypeCollect, Algorithm: AlgorithmAgents, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Round:  Round{Number: 12},
		},
		plain: `
			2d ; version 1, COLLECT
			07 ; agents
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0000000c ; round 12
		`,
		tag: "ee205a0cc50ef3e5a9490e46a7c5752d",
	},
	{
		message: Message{
			Header: Header{Type: TypeReport, Algorithm: AlgorithmAgents, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Report: Report{Round: 12, Timestamp: 99, Standings: []Standing{{0x0a000003, 100}, {0x0a000005, 254}}},
		},
		plain: `
			2e ; version 1, REPORT
			07 ; agents
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0000000c ; round 12
			00000063 ; timestamp 99
			02 ; 2 standings
			0a000003 ; 10.0.0.3
			64 ; its priority 100
			0a000005 ; 10.0.0.5
			fe ; its priority 254
		`,
		tag: "01cb39d856946de79decb005c057287c",
	},
	{
		message: Message{
			Header: Header{Type: TypeLeader, Algorithm: AlgorithmAgents, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Leader: Leader{Leader: 0x0a000005, Timestamp: 99},
		},
		plain: `
			2f ; version 1, LEADER
			07 ; agents
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; leader 10.0.0.5
			00000063 ; timestamp 99
		`,
		tag: "8e74afc1c34c3b69406e58aeee77b0af",
	},
	{
		message: Message{
			Header: Header{Type: TypeOK, Algorithm: AlgorithmAgents, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			OK:     OK{Round: 12, Trust: []ID{0x0a000003, 0x0a000005}},
		},
		plain: `
			30 ; version 1, OK
			07 ; agents
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0000000c ; round 12
			02 ; 2 boards are trusted
			0a000003 ; 10.0.0.3
			0a000005 ; 10.0.0.5
		`,
		tag: "334d9d0d6ce845be5c3caf94fdb642f8",
	},
	{
		message: Message{
			Header: Header{Type: TypeHello, Algorithm: AlgorithmScore, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig", Score: 70000},
		},
		plain: `
			22 ; version 1, HELLO
			03 ; score
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; following 10.0.0.5
			00000e10 ; age 3600 s
			05dc ; every 1500 ms
			06 ; name has 6 bytes
			6bc3a4666967 ; name
			00011170 ; score 70000
		`,
		tag:  "f33aef86f08aebcacb6f12b999eb2b01",
		tail: 4,
	},
	{
		message: Message{
			Header:   Header{Type: TypeElection, Algorithm: AlgorithmScore, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Election: Election{Suspect: 0x0a000005, Incarnation: 0xdeadbeef, LastHeard: 4711, Round: 3, Score: 70000},
		},
		plain: `
			23 ; version 1, ELECTION
			03 ; score
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000005 ; suspect 10.0.0.5
			deadbeef ; its incarnation
			00001267 ; last heard 4711
			03 ; round 3
			00011170 ; score 70000
		`,
		tag:  "4b0bfea700235a824501d88e98210325",
		tail: 4,
	},
	{
		message: Message{
			Header:      Header{Type: TypeCoordinator, Algorithm: AlgorithmCandidates, Leading: true, Sender: 0x0a000003, Term: 7, Priority: 100, Incarnation: 0x1f2e3d4c, Sequence: 42},
			Coordinator: Coordinator{Coordinator: 0x0a000003, Interval: 100 * time.Millisecond, Number: 41, Score: 70000, Candidates: []ID{0x0a000003, 0x0a000005}},
		},
		plain: `
			25 ; version 1, COORDINATOR
			45 ; leading, candidates
			467e ; group topdog
			0a000003 ; sender 10.0.0.3
			00000007 ; term 7
			64 ; priority 100
			1f2e3d4c ; incarnation
			0000002a ; sequence 42
			0a000003 ; coordinator 10.0.0.3
			0064 ; interval 100 ms
			29 ; number 41
			00011170 ; score 70000
			02 ; 2 candidates
			0a000003 ; 10.0.0.3
			0a000005 ; 10.0.0.5
		`,
		tag:  "50f7300ad1696d13f8b4751716b7b47e",
		tail: 13,
	},
}
