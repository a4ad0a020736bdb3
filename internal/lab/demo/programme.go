package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// programme writes the show as text, for people and for the README.
type programme struct {
	out       io.Writer
	heartbeat float64 // the interval in milliseconds, which is the scale of the bars
	inLine    bool    // the line of an act has been begun
}

// Widths of the columns in characters. A line has at most 80.
const (
	actWidth     = 36
	outcomeWidth = 16
	silenceWidth = 7
	barWidth     = 9
)

func (p *programme) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *programme) begin(r report) {
	p.heartbeat = r.HeartbeatMs
	p.printf("%d boards, %s, a heartbeat every %s, algorithm %s.\n",
		r.Boards, r.Ground, duration(r.HeartbeatMs), r.Algorithm)
	p.printf("A client asks every millisecond who answers at %s.\n\n", r.Address)
	p.printf("          %s%s%s\n", column("WHAT IS DONE", actWidth), column("WHAT FOLLOWS", outcomeWidth), "NO ANSWER FOR")
}

// act begins the line of an act, so that one sees what is going on.
func (p *programme) act(r result) {
	p.printf("%5.1f s   %s", r.AtMs/1000, column(r.Text, actWidth))
	p.inLine = true
}

// result ends it.
func (p *programme) result(r result) {
	p.inLine = false
	if r.Error != "" {
		p.printf("FAILED\n          %s\n", r.Error)
		return
	}
	outcome, missed := r.After+" takes over", duration(r.OutageMs)
	switch {
	case r.Act == actStart:
		outcome = r.After + " leads"
	case !r.Moved:
		outcome = r.After + " leads on"
		if r.OutageMs < noticeableMs || r.stoodStill() {
			missed = "-"
		}
	}
	line := fmt.Sprintf("%s%*s", column(outcome, outcomeWidth), silenceWidth, missed)
	if r.Moved && r.Act != actStart {
		line += "  " + bar(r.OutageMs, p.heartbeat/7, barWidth)
	}
	p.printf("%s\n", line)
	if r.Moved && r.stoodStill() {
		p.printf("          (this machine was busy: the client itself stood still for %s)\n", duration(r.ClientPausedMs))
	}
	if r.TwoHoldersMs > 0 {
		p.printf("          (two boards held the address for %s)\n", duration(r.TwoHoldersMs))
	}
}

// noticeableMs is how long an answer must fail to come to be worth a word when
// nothing has moved. What is shorter comes from the machine that the show runs on.
const noticeableMs = 10

// stoodStill reports whether it was the client rather than the boards that made
// the outage long.
func (r result) stoodStill() bool {
	return r.ClientPausedMs > noticeableMs && r.ClientPausedMs > r.OutageMs/2
}

// interrupted ends the line of an act that will not end.
func (p *programme) interrupted() {
	if p.inLine {
		p.printf("interrupted\n")
	}
}

func (p *programme) end(r report) {
	s := r.Summary
	figures := func(median, longest float64) string {
		return fmt.Sprintf("no answer for %s (median), %s at most", duration(median), duration(longest))
	}
	p.printf("\nThe leader vanished:     %s\n", figures(s.TakeoverMedianMs, s.TakeoverLongestMs))
	p.printf("The leader handed over:  %s\n", figures(s.HandoverMedianMs, s.HandoverLongestMs))
	p.printf("Two boards held the address for %s.\n", duration(s.TwoHoldersMs))
}

// column pads a text.
func column(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// duration writes milliseconds as people read them: three digits are enough.
func duration(ms float64) string {
	switch {
	case ms == 0:
		return "0 ms"
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 9999.5:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.0f s", ms/1000)
	}
}

// ago writes how long ago something was.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s ago", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.0f min ago", d.Minutes())
	default:
		return fmt.Sprintf("%.0f h ago", d.Hours())
	}
}

// bar draws a length in eighths of a character. What is longer than the bar may
// be ends in an arrow.
func bar(value, perCharacter float64, width int) string {
	eighths := int(value/perCharacter*8 + 0.5)
	switch {
	case value <= 0:
		return ""
	case eighths > 8*width:
		return strings.Repeat("█", width-1) + "▶"
	}
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 || text == "" {
		text += string([]rune("▏▎▍▌▋▊▉")[max(0, rest-1)])
	}
	return text
}
