package simpage

import (
	"strings"

	"topdog/election"
	"topdog/internal/lab/draw"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// meaning is what a message means in an algorithm.
func meaning(a wire.Algorithm, e *draw.Step) string {
	kind, m := e.Counted, e.Message
	if text := commonKinds[kind]; text != "" {
		return text
	}
	if m.Type == wire.TypeAnswer && m.Answer.Leader != wire.Nobody {
		return "“I have heard the leader, that long ago.”"
	}
	if m.Type == wire.TypeVote && m.Vote.Ballot != wire.BallotRequest {
		return "“I do not need your votes any more”, or “this is my list of voters”."
	}
	if text := abouts[a].messages[m.Type]; text != "" {
		return text
	}
	return commonMessages[m.Type]
}

// Some kinds of one type mean different things.
var commonKinds = map[sim.Kind]string{
	sim.KindReply:       "An answer: “I lead, and I live.”",
	sim.KindHandover:    "“I outrank you. Please hand over to me.” Two boards must not have the address.",
	sim.KindTimingQuery: "It measures how long a message to the leader and back takes.",
	sim.KindTimingReply: "The answer by which the follower measures the time.",
	sim.KindLook:        "The new leader looks for the one that it has replaced, in case that is still there.",
}

// commonMessages are those that mean the same with all algorithms.
var commonMessages = map[wire.Type]string{
	wire.TypeHeartbeat:   "“I lead, and I live.” The leader says so every 100 ms.",
	wire.TypeHello:       "“I am here, and I follow that leader.”",
	wire.TypeElection:    "“Is the leader alive?”",
	wire.TypeAnswer:      "“I am alive.”",
	wire.TypeCoordinator: "“I lead now.”",
	wire.TypeResign:      "“I do not lead any more.” The address is free.",
	wire.TypeQuery:       "“Who leads?”",
	wire.TypeRival:       "Two leaders have met. This decides which of them goes on.",
	wire.TypeSupport:     "“I have heard your heartbeat, and for a while I support nobody else.”",
	wire.TypePause:       "The group rests.",
}

var roleMeanings = map[election.Role]string{
	election.Follower:  "",
	election.Candidate: "It believes that there is no leader any more, and does something about it.",
	election.Leader:    "From now on it sends a HEARTBEAT every 100 ms, so that all know that it lives.",
	election.Listener:  "It asks who leads, and waits for the answer.",
	election.Isolated:  "It has no network. It can neither hear nor tell anybody anything.",
	election.Barred:    "It may not take part.",
}

// addressMeaning explains what boards do with the address.
func addressMeaning(what string) string {
	switch {
	case strings.HasPrefix(what, "takes"):
		return "Whoever asks for the service at the floating address now reaches this board."
	case strings.HasPrefix(what, "releases"):
		return "It does not answer at the floating address any more."
	case strings.HasPrefix(what, "announces"):
		return "It tells all machines on the LAN where the floating address is."
	case looks(what):
		return "It looks whether its own port works, and whether another machine still answers at the address."
	case strings.HasPrefix(what, "has lost the majority"):
		return "It has not heard from a majority for so long that it may not lead any more."
	case strings.HasPrefix(what, "its lease ends"):
		return "A leader that cannot say that it lives must not answer at the address."
	default:
		return ""
	}
}

// faultMeaning explains what happens to boards and to the LAN.
func faultMeaning(what string) string {
	switch {
	case strings.HasPrefix(what, "crashes"):
		return "It says nothing any more. The others do not know that: they only stop hearing it."
	case strings.HasPrefix(what, "cable out"):
		return "It hears nobody, and nobody hears it. It notices that at once; the others do not."
	case strings.HasPrefix(what, "frozen"):
		return "Its program stands still. Its messages wait."
	case strings.HasPrefix(what, "thawed"):
		return "Its program goes on as if nothing had been, and finds out how late it is."
	case strings.HasPrefix(what, "starts"):
		return "It is switched on, and knows nothing of what has happened meanwhile."
	case strings.HasPrefix(what, "notices"):
		return "Only this board has noticed. The papers count from such a moment."
	case what == "partition healed":
		return "All boards hear each other again."
	case strings.HasPrefix(what, "partition"):
		return "The parts do not hear each other. In each part the others seem to be dead."
	case strings.Contains(what, "does not reach"):
		return "In the other direction the messages still arrive."
	default:
		return ""
	}
}
