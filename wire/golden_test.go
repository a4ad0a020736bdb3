package wire

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"
)

// goldenKey and goldenGroup are the ones of the example in the package comment.
const goldenGroup = "topdog"

var goldenKey = []byte{
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
}

var goldenNonce = Nonce{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// golden is one packet of testdata/packets.txt.
type golden struct {
	message    Message
	text       string // what its String gives
	plain, tag []byte
	// tail is how many bytes at the end of the plain packet are optional. They are one tail or several: tails are how long the
	// packet is where each of them begins.
	tail  int
	tails []int
}

//go:embed testdata/packets.txt
var packetsText string

// goldens has every message at least once.
var goldens = readGoldens()

func readGoldens() []golden {
	blocks := strings.Split(packetsText, "\n\n")[1:] // behind the comment
	all := make([]golden, len(goldenMessages))
	for i, block := range blocks {
		g := &all[i]
		g.message = goldenMessages[i]
		var fields string
		g.text, fields, _ = strings.Cut(block, "\n")
		for line := range strings.Lines(fields) {
			digits, _, _ := strings.Cut(strings.ReplaceAll(line, " ", ""), ";")
			digits = strings.TrimSpace(digits)
			if tag, ok := strings.CutPrefix(digits, "tag"); ok {
				g.tag = fromHex(tag)
			} else if digits == "tail" {
				g.tails = append(g.tails, len(g.plain))
			} else {
				g.plain = append(g.plain, fromHex(digits)...)
			}
		}
		if len(g.tails) > 0 {
			g.tail = len(g.plain) - g.tails[0]
		}
	}
	return all
}

func fromHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// bytes returns a copy of the plain packet.
func (g *golden) bytes() []byte { return bytes.Clone(g.plain) }

// authenticated returns the packet with its tag.
func (g *golden) authenticated() []byte {
	packet := g.bytes()
	packet[offFlags] |= flagAuthenticated
	return append(packet, g.tag...)
}

// ofPi3 returns the header with what most packets have in the fields that are not given.
func ofPi3(h Header) Header {
	h.Sender, h.Priority, h.Sequence = 0x0a000003, 100, 42
	h.Term = cmp.Or(h.Term, 7)
	h.Incarnation = cmp.Or(h.Incarnation, 0x1f2e3d4c)
	return h
}

// goldenMessages are those of the packets, in their order.
var goldenMessages = []Message{
	{
		Header:    ofPi3(Header{Type: TypeHeartbeat, Algorithm: AlgorithmHeir, Leading: true}),
		Heartbeat: Heartbeat{Interval: 100 * time.Millisecond, Number: 41},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
		Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig"},
	},
	{
		Header:   ofPi3(Header{Type: TypeElection, Algorithm: AlgorithmHeir}),
		Election: Election{Suspect: 0x0a000005, Incarnation: 0x1eadbeef, LastHeard: 4711, Round: 3},
	},
	{
		Header: ofPi3(Header{Type: TypeAnswer, Algorithm: AlgorithmScore, Reply: true}),
		Answer: Answer{Leader: 0x0a000005, Incarnation: 0x1eadbeef, LastHeard: 4712, Age: 1250 * time.Microsecond, Round: 3},
	},
	{
		Header:      ofPi3(Header{Type: TypeCoordinator, Algorithm: AlgorithmBully, Leading: true}),
		Coordinator: Coordinator{Coordinator: 0x0a000003, Interval: 65535 * time.Millisecond, Grace: MaxGrace, Number: 255},
	},
	{Header: ofPi3(Header{Type: TypeResign, Algorithm: AlgorithmHeir}), Resign: Resign{Successor: 0x0a000005}},
	{Header: ofPi3(Header{Type: TypeQuery, Algorithm: AlgorithmMinID}), Query: Query{Purpose: PurposeHandover, Round: 9}},
	{
		Header:    ofPi3(Header{Type: TypeChallenge, Algorithm: AlgorithmHeir, Reply: true}),
		Challenge: Challenge{Target: 0x0a000005, Incarnation: 0x1eadbeef, Nonce: goldenNonce},
	},
	{Header: ofPi3(Header{Type: TypeProof, Algorithm: AlgorithmHeir, Reply: true}), Proof: Proof{Nonce: goldenNonce}},
	{Header: ofPi3(Header{Type: TypeHalt, Algorithm: AlgorithmModified}), Halt: Halt{Suspect: 0x0a000005}},
	{Header: ofPi3(Header{Type: TypeStart, Algorithm: AlgorithmAgents}), Round: Round{Number: 12}},
	{Header: ofPi3(Header{Type: TypeAck, Algorithm: AlgorithmAgents}), Round: Round{Number: 12}},
	{Header: ofPi3(Header{Type: TypeCollect, Algorithm: AlgorithmAgents}), Round: Round{Number: 12}},
	{
		Header: ofPi3(Header{Type: TypeReport, Algorithm: AlgorithmAgents}),
		Report: Report{Round: 12, Timestamp: 99, Standings: []Standing{{0x0a000003, 100}, {0x0a000005, 254}}},
	},
	{Header: ofPi3(Header{Type: TypeLeader, Algorithm: AlgorithmAgents}), Leader: Leader{Leader: 0x0a000005, Timestamp: 99}},
	{Header: ofPi3(Header{Type: TypeOK, Algorithm: AlgorithmAgents}), OK: OK{Round: 12, Trust: []ID{0x0a000003, 0x0a000005}}},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmScore}),
		Hello: Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, NoMulticast: true, Grace: 10 * time.Millisecond,
			Name: "käfig", Score: 70000},
	},
	{
		Header:   ofPi3(Header{Type: TypeElection, Algorithm: AlgorithmScore}),
		Election: Election{Suspect: 0x0a000005, Incarnation: 0x1eadbeef, LastHeard: 4711, Round: 3, NoClaim: true, Score: 70000},
	},
	{
		Header: ofPi3(Header{Type: TypeCoordinator, Algorithm: AlgorithmCandidates, Leading: true}),
		Coordinator: Coordinator{Coordinator: 0x0a000003, Interval: 100 * time.Millisecond, Grace: 76 * time.Millisecond, Number: 41,
			Score: 70000, Candidates: []ID{0x0a000003, 0x0a000005}},
	},
	{
		Header: ofPi3(Header{Type: TypeRival, Algorithm: AlgorithmHeir, Leading: true, Term: MaxTerm, Incarnation: MaxIncarnation}),
		Rival:  Rival{Rival: 0x0a000005, Decision: DecisionYield, Reach: 3, Age: 90061 * time.Millisecond},
	},
	{
		Header:  ofPi3(Header{Type: TypeSupport, Algorithm: AlgorithmStrict}),
		Support: Support{Leader: 0x0a000005, Incarnation: 0x1eadbeef, Term: 6, Heartbeat: 4711, Voters: 0x33182271},
	},
	{
		Header: ofPi3(Header{Type: TypeVote, Algorithm: AlgorithmStrict}),
		Vote:   Vote{Ballot: BallotRequest, Number: 9, Interval: 100 * time.Millisecond, Grace: 10 * time.Millisecond, Voters: 0x33182271},
	},
	{
		Header: ofPi3(Header{Type: TypeGrant, Algorithm: AlgorithmStrict}),
		Grant:  Grant{Candidate: 0x0a000005, Incarnation: 0x1eadbeef, Number: 9, Voters: 0x33182271},
	},
	{
		Header:    ofPi3(Header{Type: TypeHeartbeat, Algorithm: AlgorithmHeir, Leading: true, Grade: GradeFailing, Incarnation: MaxIncarnation}),
		Heartbeat: Heartbeat{Interval: 100 * time.Millisecond, Number: 41},
	},
	{
		Header: ofPi3(Header{Type: TypeResign, Algorithm: AlgorithmHeir, Grade: GradeDrained}),
		Resign: Resign{Successor: 0x0a000005},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir, Grade: GradeProbation}),
		Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig"},
	},
	{Header: ofPi3(Header{Type: TypePause, Algorithm: AlgorithmHeir}), Pause: Pause{Number: 2, Leader: 0x0a000005, Left: time.Hour}},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
		Hello:  Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig", Keys: Keys{Signs: 0x030d726e}},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmScore}),
		Hello: Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig", Score: 70000,
			Keys: Keys{Signs: 0x030d726e, Also: 0xcc94506b}},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
		Hello: Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig", Keys: Keys{Signs: 0x030d726e},
			Settings: Settings{Heartbeat: 100 * time.Millisecond, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.100"), netip.MustParseAddr("10.0.0.101")}}},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
		Hello: Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig",
			Settings: Settings{Heartbeat: 100 * time.Millisecond, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.100")}}, Program: "1.4.0"},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
		Hello: Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig",
			Settings: Settings{Heartbeat: 100 * time.Millisecond, Addresses: bothFamilies}, Program: "1.4.0"},
	},
	{
		Header: ofPi3(Header{Type: TypeHello, Algorithm: AlgorithmHeir}),
		Hello: Hello{Following: 0x0a000005, Age: time.Hour, Interval: 1500 * time.Millisecond, Name: "käfig",
			Settings: Settings{Heartbeat: 100 * time.Millisecond, Addresses: bothFamilies[1:]}},
	},
}

// bothFamilies are floating addresses as they travel: those of IPv6 last.
var bothFamilies = []netip.Addr{netip.MustParseAddr("10.0.0.100"), netip.MustParseAddr("fd00:1::250"), netip.MustParseAddr("2001:db8::250")}
