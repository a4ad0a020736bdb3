package demo

import (
	"fmt"
	"strings"
	"time"
)

// view is all that the picture shows.
type view struct {
	Algorithm  string
	Heartbeat  time.Duration
	LAN        string
	Address    string // the floating one
	Boards     []boardView
	Answers    string        // the board that answers the client; "" for none
	Silent     time.Duration // for how long none has answered; 0 if one does
	Outages    []outageView  // the newest first
	TwoHolders time.Duration // in all
	Which      bool          // a cable was asked for, and the board is awaited
	Problem    string        // what went wrong with the last key
}

// boardView is one board.
type boardView struct {
	Number  int
	Name    string
	Address string
	Lit     bool   // its LED is on at this moment
	Role    string // as the election has it, or what it is instead
	Follows string
	Term    uint32
	Leads   bool
	Holds   bool // it has the floating address
	Running bool
	Plugged bool
}

// outageView is a time without answers.
type outageView struct {
	Ago           time.Duration
	Lasted        time.Duration
	Before, After string
	Why           string
}

const (
	boxInner   = 13 // characters between the sides of a box
	boxOuter   = boxInner + 2
	boxHeight  = 7
	boxesExtra = 11 // lines that the picture with boxes needs besides them
	historyMax = 10
	fullHint   = 80 // characters that the keys need with all their words
	outageBars = 9
)

// paint draws the view on a screen of a size in characters. It is pure. The
// picture loses its history and then its boxes when there is little room, and
// never has more lines than the screen.
func paint(v view, width, height int) []row {
	top := v.header()
	top = append(top, nil)
	boxes := len(v.Boards)*(boxOuter+1) <= width && boxHeight+boxesExtra <= height
	if boxes {
		top = append(top, v.boxes(width)...)
	} else {
		top = append(top, v.list()...)
	}
	top = append(top, nil)
	top = append(top, v.client()...)
	bottom := v.keys(width)

	room := height - len(top) - len(bottom)
	if room >= 3 { // a blank line, the title, and something below it
		top = append(top, v.history(room-2)...)
	}
	for len(top)+len(bottom) < height {
		top = append(top, nil)
	}
	if extra := len(top) + len(bottom) - height; extra > 0 {
		top = top[:max(0, len(top)-extra)]
	}
	all := append(top, bottom...)
	all = all[max(0, len(all)-height):]
	for i := range all {
		all[i] = all[i].cut(width)
	}
	return all
}

// header says what one is looking at.
func (v view) header() []row {
	return []row{row{{" topdog demo", bold}, {fmt.Sprintf("   %d boards, %s", len(v.Boards), v.LAN), plain},
		{fmt.Sprintf("   %s, heartbeat %v", v.Algorithm, v.Heartbeat), dim}}}
}

// light is the LED.
func (b boardView) light() row {
	switch {
	case !b.Lit:
		return styled("○", dim)
	case b.Leads:
		return styled("●", green)
	case b.Role == "follower" || b.Role == "heir":
		return styled("●", yellow)
	default:
		return styled("●", red)
	}
}

// role is what the board is, as it stands in the picture.
func (b boardView) role() row {
	switch {
	case b.Leads:
		return styled("LEADER", green)
	case !b.Running:
		return styled(b.Role, dim)
	case !b.Plugged:
		return styled("no link", red)
	case b.Role == "heir":
		return styled(b.Role, bold)
	default:
		return text(b.Role)
	}
}

// detail is the floating address if the board has it, or whom it follows.
func (b boardView) detail(address string) row {
	switch {
	case b.Holds:
		return styled(address, marked)
	case b.Follows != "":
		return text("follows " + b.Follows)
	}
	return nil
}

func (b boardView) term() row {
	if !b.Running || b.Term == 0 {
		return nil
	}
	return styled(fmt.Sprintf("term %d", b.Term), dim)
}

// centred puts a text in the middle of a width.
func centred(s string, width int) string { return row{{s, plain}}.centre(width).render(noEscapes) }

// boxes draws the boards side by side, each with its cable to the LAN.
func (v view) boxes(width int) []row {
	rows := make([]row, boxHeight+1)
	lan := " "
	for _, b := range v.Boards {
		corners, frame := []string{"╭", "╮", "╰", "╯", "─", "│", "┬"}, plain
		switch {
		case b.Leads:
			corners, frame = []string{"╔", "╗", "╚", "╝", "═", "║", "╤"}, green
		case !b.Running:
			frame = dim
		}
		title := fmt.Sprintf(" %d %s ", b.Number, b.Name)
		bar := func(left, middle, right string) row {
			side := boxInner - row{{middle, plain}}.width()
			return styled(left+strings.Repeat(corners[4], side/2)+middle+strings.Repeat(corners[4], side-side/2)+right, frame)
		}
		inside := func(r row) row {
			return styled(corners[5], frame).add(r.centre(boxInner), styled(corners[5], frame))
		}
		cable, joint := styled("│", frame), "╧"
		if !b.Plugged {
			cable, joint = styled("╳", red), "═"
		}
		for i, r := range []row{
			bar(corners[0], title, corners[1]),
			inside(b.light()),
			inside(b.role()),
			inside(b.detail(centred(v.Address, boxInner))),
			inside(b.term()),
			inside(styled(b.Address, dim)),
			bar(corners[2], corners[6], corners[3]),
			cable.centre(boxOuter),
		} {
			rows[i] = rows[i].add(text(" "), r)
		}
		half := (boxOuter - 1) / 2
		lan += strings.Repeat("═", half) + joint + strings.Repeat("═", boxOuter-half)
	}
	return append(rows, text(lan))
}

// list draws one line per board.
func (v view) list() (rows []row) {
	for _, b := range v.Boards {
		cable := text("  ")
		if !b.Plugged {
			cable = styled(" ╳", red)
		}
		rows = append(rows, text(fmt.Sprintf(" %2d ", b.Number)).add(b.light(), text(" "),
			text(b.Name).pad(6), b.role().pad(10), b.detail(v.Address).pad(15), b.term().pad(9),
			styled(b.Address, dim).pad(13), cable))
	}
	return rows
}

// client says what the user gets at this moment, and got at the last failover.
func (v view) client() []row {
	asks := row{{" A client asks ", plain}, {v.Address, bold}, {" every millisecond: ", plain}}
	switch {
	case v.Answers == "":
		asks = asks.add(styled("nobody has answered yet", yellow))
	case v.Silent > 0:
		asks = asks.add(styled("nobody has answered for "+duration(ms(v.Silent)), red))
	default:
		asks = asks.add(styled(v.Answers+" answers", green))
	}
	last := text(" Last failover: ")
	if o, ok := v.lastFailover(); ok {
		last = last.add(styled(duration(ms(o.Lasted)), bold), text(fmt.Sprintf(" from %s to %s", o.Before, o.After)))
	} else {
		last = last.add(text("none yet"))
	}
	held := styled(duration(ms(v.TwoHolders)), plain)
	if v.TwoHolders > 0 {
		held = styled(duration(ms(v.TwoHolders)), red)
	}
	return []row{asks, last.add(text(".  Two boards held the address for "), held, text("."))}
}

func (v view) lastFailover() (outageView, bool) {
	for _, o := range v.Outages {
		if o.Before != o.After {
			return o, true
		}
	}
	return outageView{}, false
}

// history lists the last outages in at most so many lines below its title.
func (v view) history(lines int) []row {
	rows := []row{nil, styled(" Without an answer, as the client felt it", bold)}
	if len(v.Outages) == 0 {
		return append(rows, styled("   not once; cut the power of the leader, or pull its cable", dim))
	}
	for _, o := range v.Outages[:min(len(v.Outages), lines, historyMax)] {
		who := o.Before + " → " + o.After
		if o.Before == o.After {
			who = o.Before
		}
		rows = append(rows, text(fmt.Sprintf(" %10s   ", ago(o.Ago))).add(
			text(who).pad(13), styled(fmt.Sprintf("%7s  ", duration(ms(o.Lasted))), bold),
			styled(bar(ms(o.Lasted), ms(v.Heartbeat)/7, outageBars), yellow).pad(outageBars+2), text(o.Why)))
	}
	return rows
}

// keys says what can be done, in few words if there is little room.
func (v view) keys(width int) []row {
	upTo := min(len(v.Boards), 9)
	hint := text(" ")
	for _, k := range []struct{ name, does, brief string }{
		{fmt.Sprintf("1-%d", upTo), "power", "power"},
		{fmt.Sprintf("c 1-%d", upTo), "cable", "cable"},
		{"r", "leader resigns", "resign"},
		{"s", "stop/start its daemon", "stop"},
		{"q", "quit", "quit"},
	} {
		if width < fullHint {
			hint = hint.add(styled(k.name, bold), text(" "+k.brief+"  "))
		} else {
			hint = hint.add(styled(k.name, bold), text(" "+k.does+"   "))
		}
	}
	if v.Which {
		hint = styled(fmt.Sprintf(" The cable of which board? 1-%d, or Esc", upTo), yellow)
	}
	if v.Problem != "" {
		return []row{styled(" "+v.Problem, red), hint}
	}
	return []row{hint}
}
