package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"topdog/internal/console"
)

// view is all that the picture shows.
type view struct {
	pageAbout
	Stands     []pageBoard   // how the boards stand
	Answers    string        // the board that answers the client; "" for none
	Silent     time.Duration // for how long none has answered; 0 if one does
	Outages    []outageView  // the newest first
	TwoHolders time.Duration // in all
	Which      bool          // a cable was asked for, and the board is awaited
	Problem    string        // what went wrong with the last key
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
	boxes := len(v.Stands)*(boxOuter+1) <= width && boxHeight+boxesExtra <= height
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
	return []row{row{{" topdog demo", bold}, {fmt.Sprintf("   %d boards, %s", len(v.Stands), v.LANText), plain},
		{fmt.Sprintf("   %s, heartbeat %v", v.Algorithm, time.Duration(v.HeartbeatNs)), dim}}}
}

// led is the LED.
func (b *pageBoard) led() row {
	switch {
	case !b.Light.Lit:
		return styled("○", dim)
	case b.leads():
		return styled("●", green)
	case b.Role == console.RoleFollower:
		return styled("●", yellow)
	default:
		return styled("●", red)
	}
}

// shownRole is the role of the board, or what it is instead.
func (b *pageBoard) shownRole() string {
	switch {
	case !b.Power:
		return "no power"
	case !b.runs():
		return b.Daemon
	case b.Heir:
		return "heir"
	}
	return b.Role
}

// role is what the board is, as it stands in the picture.
func (b *pageBoard) role() row {
	switch role := b.shownRole(); {
	case b.leads():
		return styled("LEADER", green)
	case !b.runs():
		return styled(role, dim)
	case !b.Cable:
		return styled("no link", red)
	case b.Heir:
		return styled(role, bold)
	default:
		return text(role)
	}
}

// detail is the floating address if the board has it, or whom it follows.
func (v view) detail(b *pageBoard, address string) row {
	switch {
	case b.Holds:
		return styled(address, marked)
	case b.Role == console.RoleFollower && b.Follows != 0:
		return text("follows " + v.Boards[b.Follows-1].Name)
	}
	return nil
}

func (b *pageBoard) term() row {
	if !b.runs() || b.Term == 0 {
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
	for i := range v.Stands {
		b, called := &v.Stands[i], v.Boards[i]
		corners, frame := []string{"╭", "╮", "╰", "╯", "─", "│", "┬"}, plain
		switch {
		case b.leads():
			corners, frame = []string{"╔", "╗", "╚", "╝", "═", "║", "╤"}, green
		case !b.runs():
			frame = dim
		}
		title := fmt.Sprintf(" %d %s ", b.Number, called.Name)
		bar := func(left, middle, right string) row {
			side := boxInner - row{{middle, plain}}.width()
			return styled(left+strings.Repeat(corners[4], side/2)+middle+strings.Repeat(corners[4], side-side/2)+right, frame)
		}
		inside := func(r row) row {
			return styled(corners[5], frame).add(r.centre(boxInner), styled(corners[5], frame))
		}
		cable, joint := styled("│", frame), "╧"
		if !b.Cable {
			cable, joint = styled("╳", red), "═"
		}
		for k, r := range []row{
			bar(corners[0], title, corners[1]),
			inside(b.led()),
			inside(b.role()),
			inside(v.detail(b, centred(v.Address, boxInner))),
			inside(b.term()),
			inside(styled(called.Address, dim)),
			bar(corners[2], corners[6], corners[3]),
			cable.centre(boxOuter),
		} {
			rows[k] = rows[k].add(text(" "), r)
		}
		half := (boxOuter - 1) / 2
		lan += strings.Repeat("═", half) + joint + strings.Repeat("═", boxOuter-half)
	}
	return append(rows, text(lan))
}

// list draws one line per board.
func (v view) list() (rows []row) {
	for i := range v.Stands {
		b, called := &v.Stands[i], v.Boards[i]
		cable := text("  ")
		if !b.Cable {
			cable = styled(" ╳", red)
		}
		rows = append(rows, text(fmt.Sprintf(" %2d ", b.Number)).add(b.led(), text(" "),
			text(called.Name).pad(6), b.role().pad(10), v.detail(b, v.Address).pad(15), b.term().pad(9),
			styled(called.Address, dim).pad(13), cable))
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
			styled(bar(ms(o.Lasted), ms(time.Duration(v.HeartbeatNs))/7, outageBars), yellow).pad(outageBars+2), text(o.Why)))
	}
	return rows
}

// keys says what can be done, in few words if there is little room.
func (v view) keys(width int) []row {
	upTo := min(len(v.Stands), 9)
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

// style is how a piece of text looks.
type style uint8

const (
	plain style = iota
	bold
	dim
	green
	yellow
	red
	marked // the floating address: one must find it at a glance
)

// codes are the parameters of SGR (ECMA-48, section 8.3.117). Only the sixteen
// colours that every theme of every terminal defines are used.
var codes = [...]struct{ colour, mono string }{
	plain:  {"", ""},
	bold:   {"1", "1"},
	dim:    {"2", "2"},
	green:  {"1;32", "1"},
	yellow: {"33", ""},
	red:    {"1;31", "1"},
	marked: {"1;7;32", "1;7"},
}

// span is a piece of text in one style, and row is a row of the screen.
type (
	span struct {
		text  string
		style style
	}
	row []span
)

func text(s string) row               { return row{{s, plain}} }
func styled(s string, look style) row { return row{{s, look}} }

// width counts characters; all that the picture uses are one column wide.
func (r row) width() (n int) {
	for _, s := range r {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// add appends spans.
func (r row) add(more ...row) row {
	for _, m := range more {
		r = append(r, m...)
	}
	return r
}

// pad fills up to a width on the right.
func (r row) pad(width int) row {
	if missing := width - r.width(); missing > 0 {
		r = append(r, span{strings.Repeat(" ", missing), plain})
	}
	return r
}

// centre puts the row in the middle of a width.
func (r row) centre(width int) row {
	left := max(0, (width-r.width())/2)
	return append(row{{strings.Repeat(" ", left), plain}}, r...).pad(width)
}

// cut shortens the row to a width.
func (r row) cut(width int) (short row) {
	for _, s := range r {
		if n := utf8.RuneCountInString(s.text); n > width {
			s.text = string([]rune(s.text)[:max(0, width)])
		}
		width -= utf8.RuneCountInString(s.text)
		if s.text != "" {
			short = append(short, s)
		}
	}
	return short
}

// palette is what the terminal may be asked for.
type palette int

const (
	noEscapes palette = iota // nothing but text
	mono                     // bold and reverse, for NO_COLOR
	colours
)

// render makes what is sent to a terminal.
func (r row) render(p palette) string {
	var b strings.Builder
	for _, s := range r {
		code := ""
		switch p {
		case mono:
			code = codes[s.style].mono
		case colours:
			code = codes[s.style].colour
		}
		if code == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + code + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}
