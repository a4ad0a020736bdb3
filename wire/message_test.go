package wire

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"topdog/internal/lab/assert"
)

func TestFieldErrors(t *testing.T) {
	for _, test := range []struct {
		kind   Type
		field  string
		change func(m *Message)
	}{
		{0, "Type", func(*Message) {}},
		{22, "Type", func(*Message) {}},
		{32, "Type", func(*Message) {}},
		{255, "Type", func(*Message) {}},
		{TypeHalt, "Algorithm", func(m *Message) { m.Algorithm = 0 }},
		{TypeHalt, "Algorithm", func(m *Message) { m.Algorithm = 16 }},
		{TypeHalt, "Sender", func(m *Message) { m.Sender = Nobody }},
		{TypeHalt, "Sequence", func(m *Message) { m.Sequence = 0 }},
		{TypeHalt, "Term", func(m *Message) { m.Term = MaxTerm + 1 }},
		{TypeHalt, "Incarnation", func(m *Message) { m.Incarnation = MaxIncarnation + 1 }},
		{TypeHalt, "Grade", func(m *Message) { m.Grade = MaxGrade + 1 }},
		{TypeHeartbeat, "Interval", func(m *Message) { m.Heartbeat.Interval = 0 }},
		{TypeHeartbeat, "Grace", func(m *Message) { m.Heartbeat.Grace = -1 }},
		{TypeHeartbeat, "Interval", func(m *Message) { m.Heartbeat.Interval = -time.Second }},
		{TypeHeartbeat, "Interval", func(m *Message) { m.Heartbeat.Interval = 65535*time.Millisecond + 1 }},
		{TypeHello, "Age", func(m *Message) { m.Hello.Age = -1 }},
		{TypeHello, "Interval", func(m *Message) { m.Hello.Interval = 0 }},
		{TypeHello, "Name", func(m *Message) { m.Hello.Name = strings.Repeat("x", MaxName+1) }},
		{TypeHello, "Name", func(m *Message) { m.Hello.Name = "caf\xe9" }},
		{TypeHello, "Name", func(m *Message) { m.Hello.Name = "\x1b[2J" }},
		{TypeHello, "Name", func(m *Message) { m.Hello.Name = "a\u2066b" }},
		{TypeAnswer, "Age", func(m *Message) { m.Answer.Age = -time.Microsecond }},
		{TypeCoordinator, "Coordinator", func(m *Message) { m.Coordinator.Coordinator = Nobody }},
		{TypeCoordinator, "Interval", func(m *Message) { m.Coordinator.Interval = 2 * time.Minute }},
		{TypeCoordinator, "Grace", func(m *Message) { m.Coordinator.Grace = MaxGrace + 1 }},
		{TypeHello, "Grace", func(m *Message) { m.Hello.Grace = MaxGrace + 1 }},
		{TypeRival, "Rival", func(m *Message) { m.Rival.Rival = Nobody }},
		{TypeRival, "Age", func(m *Message) { m.Rival.Age = -1 }},
		{TypeSupport, "Leader", func(m *Message) { m.Support.Leader = Nobody }},
		{TypeSupport, "Term", func(m *Message) { m.Support.Term = MaxTerm + 1 }},
		{TypeVote, "Interval", func(m *Message) { m.Vote.Interval = 0 }},
		{TypeVote, "Grace", func(m *Message) { m.Vote.Grace = MaxGrace + 1 }},
		{TypePause, "Number", func(m *Message) { m.Pause.Number = 0 }},
		{TypePause, "Left", func(m *Message) { m.Pause = Pause{Number: 1, Left: -1} }},
		{TypeGrant, "Candidate", func(m *Message) { m.Grant.Candidate = Nobody }},
		{TypeChallenge, "Target", func(m *Message) { m.Challenge.Target = Nobody }},
		{TypeReport, "Standings", func(m *Message) { m.Report.Standings = make([]Standing, MaxBoards+1) }},
		{TypeReport, "Standings[1]", func(m *Message) { m.Report.Standings = []Standing{{1, 1}, {0, 1}} }},
		{TypeHello, "Settings.Heartbeat", func(m *Message) { m.Hello.Settings.Heartbeat = -1 }},
		{TypeHello, "Settings.Heartbeat", func(m *Message) { m.Hello.Settings.Heartbeat = 2 * time.Minute }},
		{TypeHello, "Settings.Addresses", func(m *Message) {
			m.Hello.Settings = Settings{time.Second, slices.Repeat([]netip.Addr{here}, MaxBoards+1)}
		}},
		{TypeHello, "Settings.Addresses", func(m *Message) {
			m.Hello.Settings = Settings{time.Second, slices.Repeat([]netip.Addr{netip.IPv6Loopback()}, MaxIPv6+1)}
		}},
		{TypeHello, "Settings.Addresses[2]", func(m *Message) {
			m.Hello.Settings = Settings{time.Second, []netip.Addr{here, netip.IPv6Loopback(), here}}
		}},
		{TypeHello, "Settings.Addresses[0]", func(m *Message) {
			m.Hello.Settings = Settings{time.Second, []netip.Addr{netip.MustParseAddr("fd00::1%eth0")}}
		}},
		{TypeHello, "Settings.Addresses[1]", func(m *Message) { m.Hello.Settings = Settings{time.Second, []netip.Addr{here, {}}} }},
		{TypeHello, "Program", func(m *Message) { m.Hello.Program = strings.Repeat("x", MaxName+1) }},
		{TypeHello, "Program", func(m *Message) { m.Hello.Program = "\n" }},
		{TypeLeader, "Leader", func(m *Message) { m.Leader.Leader = Nobody }},
		{TypeCoordinator, "Candidates", func(m *Message) { m.Coordinator.Candidates = make([]ID, MaxBoards+1) }},
		{TypeCoordinator, "Candidates[2]", func(m *Message) { m.Coordinator.Candidates = []ID{1, 2, 0} }},
		{TypeOK, "Trust", func(m *Message) { m.OK.Trust = make([]ID, MaxBoards+1) }},
		{TypeOK, "Trust[0]", func(m *Message) { m.OK.Trust = []ID{0, 1} }},
	} {
		m := Message{Header: goldens[0].message.Header}
		if g := goldenOf(test.kind); g != nil {
			m = g.message
		}
		m.Type = test.kind
		test.change(&m)
		got, err := newCodec(t, goldenGroup, goldenKey).Append([]byte("before"), &m)
		var field *fieldError
		switch {
		case !errors.As(err, &field):
			t.Errorf("%v with a bad %s: error %v", test.kind, test.field, err)
		case field.field != test.field || field.message != test.kind:
			t.Errorf("%v with a bad %s: error names %v %s", test.kind, test.field, field.message, field.field)
		case !strings.HasPrefix(err.Error(), "cannot encode "+test.kind.String()+": "+test.field+" "):
			t.Errorf("error reads %q", err)
		case string(got) != "before":
			t.Errorf("%v with a bad %s: returned %q", test.kind, test.field, got)
		}
	}
}

// TestRounding holds what the package comment says about times.
func TestRounding(t *testing.T) {
	for _, test := range []struct{ interval, wantInterval, age, wantHello, wantAnswer time.Duration }{
		{1, time.Millisecond, 0, 0, 0},
		{time.Millisecond, time.Millisecond, 999 * time.Nanosecond, 0, 0},
		{1500 * time.Microsecond, 2 * time.Millisecond, 1999 * time.Millisecond, time.Second, 1999 * time.Millisecond},
		{65535 * time.Millisecond, 65535 * time.Millisecond, 200 * 365 * 24 * time.Hour,
			math.MaxUint32 * time.Second, math.MaxUint32 * time.Microsecond},
	} {
		m := Message{
			Header:    goldens[0].message.Header,
			Heartbeat: Heartbeat{Interval: test.interval},
			Hello:     Hello{Interval: test.interval, Age: test.age},
			Answer:    Answer{Age: test.age},
		}
		c := newCodec(t, goldenGroup, nil)
		for _, m.Type = range []Type{TypeHeartbeat, TypeHello, TypeAnswer} {
			packet := encoded(t, c, &m)
			if drop := c.Decode(&m, packet); drop.Dropped() {
				t.Fatal(drop)
			}
		}
		got := []time.Duration{m.Heartbeat.Interval, m.Hello.Interval, m.Hello.Age, m.Answer.Age}
		want := []time.Duration{test.wantInterval, test.wantInterval, test.wantHello, test.wantAnswer}
		assert.Equal(t, want, got, "interval %v, age %v", test.interval, test.age)
	}
}

// randomMessage draws any message that the wire can carry exactly.
func randomMessage(r *rand.Rand) Message {
	interval := func() time.Duration { return time.Duration(1+r.IntN(math.MaxUint16)) * time.Millisecond }
	id := func() ID { return ID(1 + r.Uint32N(math.MaxUint32)) }
	grace := func() time.Duration { return graceOf(byte(r.Uint32())) }
	flag := func() bool { return r.IntN(2) == 0 }
	score := func() uint32 { return r.Uint32() * r.Uint32N(2) } // half of them without
	ids := func(most int) (ids []ID) {
		for range r.IntN(most + 1) {
			ids = append(ids, id())
		}
		return ids
	}
	settings := func() (s Settings) {
		if flag() {
			s.Heartbeat = interval()
			for range r.IntN(3) {
				s.Addresses = append(s.Addresses, id().Addr())
			}
			for range r.IntN(MaxIPv6+1) * r.IntN(2) {
				s.Addresses = append(s.Addresses, netip.AddrFrom16([ipv6Size]byte{0xfd, 14: byte(r.Uint32()), 15: byte(r.Uint32())}))
			}
		}
		return s
	}
	m := Message{Header: Header{
		Type: Type(1 + r.IntN(int(TypePause))), Algorithm: Algorithm(1 + r.IntN(algorithmMask)),
		Leading: r.IntN(2) == 0, Reply: r.IntN(2) == 0, Sender: id(), Term: Term(r.Uint32()) & MaxTerm,
		Priority: uint8(r.Uint32()), Grade: Grade(r.Uint32()) & MaxGrade, Incarnation: Incarnation(r.Uint32()) & MaxIncarnation, Sequence: Sequence(id()),
	}}
	switch m.Type {
	case TypeHeartbeat:
		m.Heartbeat = Heartbeat{interval(), grace(), uint8(r.Uint32())}
	case TypeHello:
		name := strings.Repeat("é", MaxName/2)[:2*r.IntN(MaxName/2+1)]
		told := settings()
		program := ""
		if told.Told() {
			program = "development build"[:r.IntN(18)]
		}
		m.Hello = Hello{ID(r.Uint32()), time.Duration(r.Uint32()) * time.Second, interval(), flag(), grace(), name, score(), Keys{Fingerprint(score()), Fingerprint(score())}, told, program}
	case TypeElection:
		m.Election = Election{ID(r.Uint32()), Incarnation(r.Uint32()), Sequence(r.Uint32()), uint8(r.Uint32()), flag(), score()}
	case TypeAnswer:
		m.Answer = Answer{ID(r.Uint32()), Incarnation(r.Uint32()), Sequence(r.Uint32()),
			time.Duration(r.Uint32()) * time.Microsecond, uint8(r.Uint32())}
	case TypeCoordinator:
		m.Coordinator = Coordinator{id(), interval(), grace(), uint8(r.Uint32()), score(), ids(MaxBoards * r.IntN(2))}
	case TypeResign:
		m.Resign.Successor = ID(r.Uint32())
	case TypeQuery:
		m.Query = Query{Purpose(r.Uint32()), uint8(r.Uint32())}
	case TypeChallenge:
		m.Challenge = Challenge{id(), Incarnation(r.Uint32()), Nonce{byte(r.Uint32()), 15: byte(r.Uint32())}}
	case TypeProof:
		m.Proof.Nonce = Nonce{byte(r.Uint32()), 15: byte(r.Uint32())}
	case TypeHalt:
		m.Halt.Suspect = ID(r.Uint32())
	case TypeStart, TypeAck, TypeCollect:
		m.Round.Number = r.Uint32()
	case TypeReport:
		m.Report = Report{Round: r.Uint32(), Timestamp: r.Uint32()}
		for range r.IntN(MaxBoards + 1) {
			m.Report.Standings = append(m.Report.Standings, Standing{id(), uint8(r.Uint32())})
		}
	case TypeLeader:
		m.Leader = Leader{id(), r.Uint32()}
	case TypeOK:
		m.OK = OK{r.Uint32(), ids(MaxBoards)}
	case TypeRival:
		m.Rival = Rival{id(), Decision(r.Uint32()), uint8(r.Uint32()), time.Duration(r.Uint32()) * time.Millisecond}
	case TypeSupport:
		m.Support = Support{id(), Incarnation(r.Uint32()), Term(r.Uint32()) & MaxTerm, Sequence(r.Uint32()), r.Uint32()}
	case TypeVote:
		m.Vote = Vote{Ballot(r.Uint32()), r.Uint32(), interval(), grace(), r.Uint32()}
	case TypeGrant:
		m.Grant = Grant{id(), Incarnation(r.Uint32()), r.Uint32(), r.Uint32()}
	case TypePause:
		m.Pause = Pause{uint32(id()), ID(r.Uint32()), time.Duration(r.Uint32()) * time.Millisecond}
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, key := range [][]byte{nil, goldenKey} {
		c := newCodec(t, goldenGroup, key)
		for range 500 {
			want := randomMessage(r)
			packet := encoded(t, c, &want)
			var got Message
			if drop := c.Decode(&got, packet); drop.Dropped() {
				t.Fatalf("%v: %v", &want, drop)
			}
			if diff := cmp.Diff(received(c, want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("message (-want +got):\n%s", diff)
			}
		}
	}
}

func TestString(t *testing.T) {
	for i := range goldens {
		assert.Is(t, goldens[i].text, goldens[i].message.String(), "")
	}
}

// TestGrace walks through all codes: each is read as what it was written for, they grow, and
// no step is larger than a sixteenth. What lies between two codes is rounded up.
func TestGrace(t *testing.T) {
	for code := 1; code < 256; code++ {
		grace := graceOf(byte(code))
		if got, ok := graceCode(grace); !ok || got != byte(code) {
			t.Errorf("grace %v has the code %d (%v), want %d", grace, got, ok, code)
		}
		if code == 255 {
			break
		}
		next := graceOf(byte(code + 1))
		if next <= grace || next > grace+grace/graceMantissas {
			t.Errorf("code %d is %v, and code %d is %v", code, grace, code+1, next)
		}
		if got, ok := graceCode(grace + 1); !ok || got != byte(code+1) {
			t.Errorf("grace %v has the code %d (%v), want %d", grace+1, got, ok, code+1)
		}
	}
	for _, test := range []struct {
		code byte
		want time.Duration
	}{{0, 0}, {0x01, 1062500}, {0x20, 4 * time.Millisecond}, {0x34, 10 * time.Millisecond}, {0xff, MaxGrace}} {
		assert.Is(t, test.want, graceOf(test.code), "code %#x", test.code)
	}
}

// TestVotersHash: the order of the list does not matter, and its argument stays as it is. The
// value was computed by another implementation of SHA-256 (Python's hashlib).
func TestVotersHash(t *testing.T) {
	voters := []ID{0x0a000005, 0x0a000003, 0x0a000004}
	assert.Is(t, 0x33182271, VotersHash(voters), "the hash")
	if !slices.Equal(voters, []ID{0x0a000005, 0x0a000003, 0x0a000004}) {
		t.Errorf("the list is now %v", voters)
	}
	if VotersHash(voters[:2]) == VotersHash(voters) {
		t.Error("two lists have one hash")
	}
}
