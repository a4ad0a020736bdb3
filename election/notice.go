package election

import (
	"fmt"
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// NoticeKind says what a person should look into.
type NoticeKind uint8

// The kinds of notices.
const (
	NoticeDuplicateID NoticeKind = iota + 1
	NoticeOtherAlgorithm
	NoticeRival
	NoticeRosterFull
	NoticeOtherVersion
	NoticeOtherVoters
	NoticeVoterTwice
	NoticeMajorityUnheard
	NoticePromiseTooLong
	NoticeAddressAnswers
	NoticeAddressStays
	NoticeNoMulticast
	NoticePatience
	noticeCount = iota + 1
)

// noticeIdentifiers are part of the JSON that docs/status.md describes.
var noticeIdentifiers = [noticeCount]string{
	NoticeDuplicateID:     "duplicate_id",
	NoticeOtherAlgorithm:  "other_algorithm",
	NoticeRival:           "rival_leader",
	NoticeRosterFull:      "too_many_boards",
	NoticeOtherVersion:    "other_version",
	NoticeOtherVoters:     "other_voters",
	NoticeVoterTwice:      "voter_twice",
	NoticeMajorityUnheard: "majority_unheard",
	NoticePromiseTooLong:  "promise_too_long",
	NoticeAddressAnswers:  "address_answers",
	NoticeAddressStays:    "address_stays",
	NoticeNoMulticast:     "no_multicast",
	NoticePatience:        "longer_grace",
}

// Identifier returns the kind for programs.
func (k NoticeKind) Identifier() string {
	if k > 0 && k < noticeCount {
		return noticeIdentifiers[k]
	}
	return "unknown"
}

// Notice is something that a person should look into.
type Notice struct {
	Kind      NoticeKind
	Board     wire.ID
	algorithm wire.Algorithm // of that board, with NoticeOtherAlgorithm
	ours      wire.Algorithm // of this board, likewise
	grace     time.Duration  // from now on, with NoticePatience
	lesson    silence.Lesson // likewise
}

func (n Notice) String() string {
	switch n.Kind {
	case NoticeDuplicateID:
		return fmt.Sprintf("another live board has this board's id %v; the one that started later stays out: give one of them another id", n.Board)
	case NoticeOtherAlgorithm:
		return fmt.Sprintf("this board runs the algorithm %v, and board %v runs the algorithm %v: set the same algorithm on all boards of the group", n.ours, n.Board, n.algorithm)
	case NoticeRival:
		return fmt.Sprintf("board %v leads as well; the partition has healed or frames were lost", n.Board)
	case NoticeRosterFull:
		return fmt.Sprintf("board %v was ignored: the group has %d boards already", n.Board, wire.MaxBoards)
	case NoticeOtherVersion:
		return fmt.Sprintf("board %v speaks another version of the protocol: upgrade the board that has the older program", n.Board)
	case NoticeOtherVoters:
		return fmt.Sprintf("board %v has another list of voters, and neither board counts the votes of the other: set the same voters on all boards", n.Board)
	case NoticeVoterTwice:
		return fmt.Sprintf("the voter %v is there twice, in two processes, and its votes do not count: stop one of them, or give it another id", n.Board)
	case NoticeMajorityUnheard:
		return "this leader does not hear the majority of the voters, so nobody answers for the address until it does: look at the network, and at the other voters"
	case NoticePromiseTooLong:
		return fmt.Sprintf("board %v asks for a longer promise than this voter makes: set the same interval and patience on all boards", n.Board)
	case NoticeAddressAnswers:
		return fmt.Sprintf("board %v is silent, but its address still answers: nobody takes it over yet", n.Board)
	case NoticeNoMulticast:
		return fmt.Sprintf("board %v gets no multicast, so broadcast is used as well", n.Board)
	case NoticeAddressStays:
		return fmt.Sprintf("the address of board %v answers and its daemon does not: is there a firewall on its UDP port?", n.Board)
	case NoticePatience:
		return fmt.Sprintf("a leader may be late by %v from now on: %s", n.grace, n.lesson.Describe(fmt.Sprintf("board %v", n.Board)))
	default:
		return "unknown notice"
	}
}
