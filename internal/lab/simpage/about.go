package simpage

import "topdog/wire"

// about is what the page says of an algorithm. The facts are those of docs/algorithms.md.
type about struct {
	leads    string
	idea     string
	steps    []string
	cost     string // in messages, with n boards, of which the leader has failed
	weakness string
	paper    string
	messages map[wire.Type]string // what a message means here, if that is particular
}

// The papers that print figures. Their sources in package papers begin with these numbers.
const (
	paper001 = "Kuang, Schildt, Sørensen and Johansen: “Leader Election: Improving the Bully Algorithm”. Aarhus University"
	paper004 = "Kabashi, Zeqiri and Zabeli: “The reduction of number messages in election bully algorithm”"
)

var paperTitles = map[string]string{"001": paper001, "004": paper004}

// The bully family calls its messages alike.
const (
	areYouAlive  = "“I miss the leader. Is anybody above me alive?”"
	iAmAlive     = "“I am alive.” That is enough: who asked knows that somebody better is there."
	iLead        = "“I lead now.” All others follow."
	namesAnother = "“This board leads now.” The winner takes over, and the others follow it."
)

var abouts = map[wire.Algorithm]about{
	wire.AlgorithmHeir: {
		leads: "The board that leads already stays the leader. After it, the highest that lives.",
		idea:  "The boards know the next leader, the heir, before they need it. So nobody has to be elected.",
		steps: []string{
			"The leader sends a heartbeat every 100 ms. All boards know when the next one is due.",
			"When it is a few milliseconds late, only the heir asks all others: “Does the leader live?” It asks several times within milliseconds.",
			"The leader answers if it lives. Another board answers if it has heard the leader since.",
			"If nobody speaks for the leader, the heir takes over, and tells all with one message.",
		},
		cost:     "k rounds of questions and one COORDINATOR: k + 4 packets on a good network, for any number of boards.",
		weakness: "A leader that stands still for longer than a few milliseconds after its heartbeat is due is replaced. The slower algorithms would have waited for it.",
		paper:    "topdog’s own. Its parts come from others: the freshness point of a heartbeat is that of Chen, Toueg and Aguilera (2002), the time for an answer that of TCP (RFC 6298).",
		messages: map[wire.Type]string{
			wire.TypeElection:    "“I miss the leader. Does anybody hear it?”",
			wire.TypeCoordinator: "“I lead now.” Nobody has spoken for the leader, or it has handed over.",
		},
	},
	wire.AlgorithmStrict: {
		leads: "The board that leads already stays the leader, as long as a majority confirms it.",
		idea:  "It is heir with votes. Two boards never have the address at the same time, whatever happens. The price: without a majority nobody has it.",
		steps: []string{
			"All boards vote here (fifteen at most). Each confirms every heartbeat, and promises by that to support nobody else for 110 ms.",
			"The leader has the address only as long as a majority has confirmed it.",
			"When a heartbeat is late, the heir asks first, as with heir. Then it asks all voters for their vote.",
			"A voter that has promised its support answers when its promise is over.",
			"With the votes of a majority the heir takes over.",
		},
		cost:     "One round trip more than heir for each change of the leader. All voters confirm each heartbeat, all the time.",
		weakness: "If half of the voters or more are gone, nobody leads.",
		paper:    "topdog’s own. That a voter needs no disk if it is silent after its start is from PaxosLease (Trencséni, Gazsó and Reinhardt, arXiv 1209.4187).",
		messages: map[wire.Type]string{
			wire.TypeElection:    "“I miss the leader. Does anybody hear it?”",
			wire.TypeCoordinator: "“I lead now.” A majority has voted for it.",
			wire.TypeVote:        "“Please vote for me.”",
			wire.TypeGrant:       "“You have my vote, and nobody else has it for a while.”",
		},
	},
	wire.AlgorithmBully: {
		leads: "The highest number that lives. It always takes the lead, hence the name.",
		idea:  "Whoever misses the leader asks all boards with higher numbers. Who gets no answer is the highest, and leads.",
		steps: []string{
			"A board that misses the leader sends ELECTION to all higher boards.",
			"Each of them that lives sends ANSWER, and asks the boards above itself in the same way.",
			"Who got an ANSWER says no more, and waits.",
			"Who got none within the time limit of 100 ms is the highest that lives. It sends COORDINATOR to all.",
		},
		cost:     "n² − n − 1 messages at worst, if the lowest notices; n − 2 messages to living boards at best, if the highest notices. (n counts the dead leader too.)",
		weakness: "It believes that messages arrive, and in time. If an ELECTION or its ANSWER is lost, two boards may lead.",
		paper:    "Garcia-Molina: “Elections in a distributed computing system”, 1982",
		messages: map[wire.Type]string{
			wire.TypeElection:    areYouAlive,
			wire.TypeAnswer:      iAmAlive,
			wire.TypeCoordinator: "“I lead now.” Nobody above it has answered, or the leader has handed over.",
		},
	},
	wire.AlgorithmScore: {
		leads: "The greatest score. Here it is the number of the board; it may be its age, or what a program says.",
		idea:  "The bully algorithm with a score that nobody else can know. So all boards must be asked, and nobody can know when all answers have come.",
		steps: []string{
			"A board that misses the leader sends ELECTION with its score to all boards.",
			"Each board with a greater score sends ANSWER, and holds an election of its own.",
			"Who got an ANSWER says no more, and waits.",
			"Who got none within two seconds leads, and sends COORDINATOR to all.",
		},
		cost:     "If all boards notice: (n − 1)² ELECTIONs, (n − 1)(n − 2) / 2 ANSWERs, and one COORDINATOR to n − 1 boards.",
		weakness: "It takes two seconds, however fast the network is.",
		paper:    "The bully algorithm as a program in the agent language ASTRA",
		messages: map[wire.Type]string{
			wire.TypeElection:    "“I miss the leader. This is my score. Has anybody more?”",
			wire.TypeAnswer:      "“I have a greater score.”",
			wire.TypeCoordinator: "“I lead now.” In two seconds nobody has told it of a greater score, or the leader has handed over.",
		},
	},
	wire.AlgorithmModified: {
		leads: "The highest number that lives.",
		idea:  "The bully algorithm with two elections at most. Who notices first forbids the others to hold elections.",
		steps: []string{
			"A board that misses the leader sends HALT to all: nobody else begins an election now.",
			"It sends ELECTION to all higher boards, and collects their ANSWERs for 100 ms.",
			"It sends START to the highest that has answered.",
			"That one asks the boards above itself. Nobody answers within 100 ms, so it sends COORDINATOR to all.",
		},
		cost:     "3n − 4 messages if the lowest notices. The paper does not count the n − 1 HALTs and the START.",
		weakness: "It saves messages only if one board notices first. If all notice at once, all halt each other.",
		paper:    paper001,
		messages: map[wire.Type]string{
			wire.TypeHalt:        "“I hold an election. Do not begin another one.”",
			wire.TypeElection:    areYouAlive,
			wire.TypeAnswer:      iAmAlive,
			wire.TypeStart:       "“You are the highest that has answered. Now you hold the election.”",
			wire.TypeCoordinator: iLead + " All may hold elections again.",
		},
	},
	wire.AlgorithmCandidates: {
		leads: "The highest number that lives.",
		idea:  "Only the upper half of the boards, the candidates, are asked. And who asks decides: there is one election and no more.",
		steps: []string{
			"A board that misses the leader sends ELECTION to the candidates. A candidate asks only those above itself.",
			"Each candidate that lives sends ANSWER, and does nothing else.",
			"After 100 ms the board that asked names the highest that has answered: COORDINATOR to all.",
			"A board that has only the dead leader above it need not ask anybody, and takes over at once.",
		},
		cost:     "2⌈n / 2⌉ − 1 + n − 1 messages at worst, n − 1 at best.",
		weakness: "The next board asks nobody. If it misses three heartbeats because messages are lost, it takes over from a leader that lives.",
		paper:    "Murshed and Allen: “Enhanced bully algorithm for leader node election in synchronous distributed systems”, 2012. The figures are in " + paper004,
		messages: map[wire.Type]string{
			wire.TypeElection:    "“I miss the leader. Which candidates are alive?”",
			wire.TypeAnswer:      "“I am alive.” Who asked collects these answers.",
			wire.TypeCoordinator: namesAnother,
		},
	},
	wire.AlgorithmMinID: {
		leads: "The smallest number that lives.",
		idea:  "The next leader is known: it is the second smallest number. It takes over at once, with a single message.",
		steps: []string{
			"If the second smallest board misses the leader, it sends COORDINATOR at once.",
			"Any other board that misses the leader asks all: ELECTION.",
			"Each board that lives answers. The second smallest answers that it leads.",
			"After 100 ms the board that asked names the smallest that has answered.",
		},
		cost:     "A message to all counts as one: 1 message at best, n + 1 at worst with n boards that live. No other paper here needs fewer.",
		weakness: "The second smallest asks nobody. If it misses three heartbeats because messages are lost, it takes over from a leader that lives.",
		paper:    paper004,
		messages: map[wire.Type]string{
			wire.TypeElection:    "“I miss the leader. Who is alive?”",
			wire.TypeAnswer:      "“I am alive.” Who asked looks for the smallest number.",
			wire.TypeCoordinator: namesAnother,
		},
	},
	wire.AlgorithmAgents: {
		leads: "The board that leads already stays the leader. After it, the highest in the judge’s list.",
		idea:  "All boards agree, all the time, on who is there. One of them, the judge, keeps the list, and names the next leader.",
		steps: []string{
			"The judge says again and again whom it trusts (OK), and all confirm it (ACK).",
			"When the leader is silent, the judge sends COLLECT to all.",
			"Each board sends a REPORT of the boards that it knows.",
			"The judge names the highest of them: LEADER to all. That one takes over.",
			"If the judge is silent too, a new round begins with START. Its judge is the next board.",
		},
		cost:     "COLLECT and LEADER to n − 1 boards, and n − 2 REPORTs. But the agreement costs one packet of each board every 200 ms, for ever.",
		weakness: "It believes that messages arrive within 25 ms. On a slow network it changes leaders for nothing.",
		paper:    "Li, Zhao and Wang: “Group leader election algorithm for agent groups based distributed network management”",
		messages: map[wire.Type]string{
			wire.TypeStart:       "“A new round begins.” The next board is its judge.",
			wire.TypeOK:          "The judge: “These are the boards that I trust.”",
			wire.TypeAck:         "“I agree.”",
			wire.TypeCollect:     "The judge: “The leader is silent. Tell me whom you know.”",
			wire.TypeReport:      "The boards that the sender knows.",
			wire.TypeLeader:      "The judge: “This board leads now.”",
			wire.TypeCoordinator: iLead,
		},
	},
}
