package console

import (
	"fmt"
	"strings"
)

// rotation says how far the group is with the change of its key; "" if it does not change it.
func (s *Status) rotation() string {
	own := &s.Board
	if own.SignsWith == "" {
		return ""
	}
	signing := map[string]int{}
	order := []string{own.SignsWith}
	boards, changing := 0, own.AlsoAccepts != ""
	var without []string // who does not accept the other key of this board
	for i := range s.Boards {
		b := &s.Boards[i]
		if !b.Self && !b.live() {
			continue
		}
		boards++
		if b.SignsWith != own.SignsWith || b.AlsoAccepts != own.AlsoAccepts {
			changing = changing || b.SignsWith != ""
			if other := own.AlsoAccepts; other != "" && b.SignsWith != other && b.AlsoAccepts != other {
				without = append(without, s.shortName(b.ID, b.Name))
			}
		}
		if b.SignsWith == "" {
			continue
		}
		if signing[b.SignsWith]++; signing[b.SignsWith] == 1 && b.SignsWith != own.SignsWith {
			order = append(order, b.SignsWith)
		}
	}
	if !changing {
		return ""
	}
	text := "changing: this board signs with " + own.SignsWith
	if own.AlsoAccepts != "" {
		text += " and accepts " + own.AlsoAccepts + " as well"
	}
	var counts []string
	for _, key := range order {
		counts = append(counts, fmt.Sprintf("%d with %s", signing[key], key))
	}
	text += fmt.Sprintf("; of %d boards sign %s", boards, strings.Join(counts, ", "))
	if len(without) > 0 {
		text += fmt.Sprintf("; %s is not accepted by %s yet", own.AlsoAccepts, list(without))
	}
	return text
}
