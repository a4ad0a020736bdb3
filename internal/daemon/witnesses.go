package daemon

import (
	"fmt"
	"net/netip"
	"time"

	"topdog/internal/config"
	"topdog/netio"
)

// witness is a host whose answers show that this board's port receives.
type witness struct {
	addr       netip.Addr
	configured bool          // by its address; else it is the gateway
	askedAt    time.Duration // when it was asked last
	since      time.Duration // when it was asked first in the last doubt
	heard      bool          // it has answered since then
	present    bool          // it has answered since then, or in the doubt before
	vain       int           // in how many doubts it was asked since its last answer
}

const (
	// witnessAnswers is how long a witness may take to answer: a Wi-Fi station that sleeps
	// wakes for every third beacon of 102 ms, and some sleep for longer.
	witnessAnswers = 500 * time.Millisecond
	// witnessMissed is how often a witness must be asked in vain before people are told.
	witnessMissed = 2
	// answerersMax bounds how many former witnesses are remembered: a board that is carried around
	// has another gateway in each network.
	answerersMax = 4 * config.MaxWitnesses
	// lookAgain is how long after the last question a silent witness is asked again when somebody
	// asks for the status, so that the problem ends soon after the witness is back.
	lookAgain = 10 * time.Second
)

// witnessRetries are the times, each after the last question, at which a silent witness is asked
// again. A question may be lost, and a port of a switch with spanning tree forwards nothing for
// 30 s after the link has come up.
var witnessRetries = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// ask notes that a witness is asked now, and returns the question.
func (w *witness) ask(now time.Duration) netio.ARPQuestion {
	if now-w.since > witnessAnswers { // otherwise it may still answer the last question
		w.present, w.heard, w.since = w.heard, false, now
		w.vain++
	}
	w.askedAt = now
	return netio.ARPQuestion{Addr: w.addr}
}

// receive handles an answer, perhaps of another host. It reports whether this witness has answered.
func (w *witness) receive(answer netio.ARPAnswer) bool {
	if w.addr != answer.Addr || answer.AskedAt < w.since {
		return false
	}
	w.present, w.heard, w.vain = true, true, 0
	return true
}

// retryAt is when the witness is asked again because it has not answered.
func (w *witness) retryAt() time.Duration {
	if w.vain == 0 || w.vain > len(witnessRetries) {
		return never
	}
	return w.askedAt + witnessRetries[w.vain-1]
}

// missed reports whether the witness has been silent for so long that people should know.
func (w *witness) missed(now time.Duration) bool {
	return w.vain > witnessMissed || w.vain == witnessMissed && now-w.since >= witnessAnswers
}

// problem says that the witness does not answer, and what to do. answered says that it has answered before.
func (w *witness) problem(answered bool) string {
	who, do := fmt.Sprintf("the gateway %v", w.addr), "name another host of this network that always runs as `witness`"
	if w.configured {
		who, do = fmt.Sprintf("witness %v", w.addr), "switch it on, or name another host of this network that always runs"
	}
	what := "has never answered an ARP request"
	if answered {
		what = "does not answer ARP requests any more"
	}
	return fmt.Sprintf("%s %s, so it cannot show whether anything arrives on this board's port: %s", who, what, do)
}
