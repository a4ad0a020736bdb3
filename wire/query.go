package wire

import "fmt"

// Query asks who leads (Kabashi et al., step 5), or asks the leader for a handover.
type Query struct {
	Purpose Purpose
	Round   uint8 // copied into the answer
}

// querySize is the length of the body.
const querySize = 2

func (q *Query) appendTo(dst []byte) []byte {
	return append(dst, byte(q.Purpose), q.Round)
}

// decode lets purposes through that this version does not know, so that a later
// version can ask for more: who does not understand a question does not answer it.
func (q *Query) decode(body []byte) {
	q.Purpose = Purpose(body[0])
	q.Round = body[1]
}

func (q *Query) summary() string {
	return fmt.Sprintf("round %d, %v", q.Round, q.Purpose)
}

// Purpose is why a board sends a QUERY. Only append.
type Purpose uint8

// The purposes.
const (
	PurposeJoin     Purpose = 0 // who leads?
	PurposeHandover Purpose = 1 // I outrank you and want to lead: please resign to me
)

func (p Purpose) String() string {
	switch p {
	case PurposeJoin:
		return "join"
	case PurposeHandover:
		return "handover"
	default:
		return fmt.Sprintf("purpose %d", uint8(p))
	}
}
