// Package scene plays scenes. A scene is a text: what is done to the boards of a group, and what must hold then, a line each. It is
// played on any [Stage]: election cores in virtual time, daemons on a fake LAN in virtual time, boards in network namespaces,
// emulated boards.
//
//	boards 3 KEY=VALUE …           pi1, pi2 and pi3 start, and pi3 leads, whose rank is the highest
//	boards 3 run                   these boards run, or start all at once
//	agreed                         wait until all boards follow one leader, which is called leader from here on
//	agreed anew                    the same, and it is another one than the leader of before
//	pi3 start KEY=VALUE …          start a board (again); without settings it has those of before
//	pi3 set KEY=VALUE …            these are its settings from now on; it goes on running
//	pi3 topdog drain says "…"      a command of topdog that succeeds, or that refuses "…"
//	wait 5s                        or a time that is drawn: wait 20ms..60ms
//	at 2s: pi5 kill                so long after the scene began, or what is measured
//	repeat 40 … end                the lines in between so often, or as long as that: repeat for 5s … end
//	measure cut "the leader is cut off"   what is observed from here until the next measure, or until: measured
//
// Faults are lines, too. [Faults] has them all:
//
//	pi1,pi2 pull                   a fault of boards, and plug ends it
//	split pi1,pi2 / pi3,client     the LAN falls into groups; whoever is in none is in one more
//	halt                           a fault of the whole LAN
//	lose 20%
//
// A board is pi1, leader, another (the first that is not the leader), others (all but the leader), or all. A machine without topdog is client, or
// machine1 and so on.
//
// These must hold, at once (see [Prompt]), within 130ms, or for 5s if the line begins so:
//
//	pi2 leads                      every board that runs, is plugged in and does not stand still follows it
//	pi2 holds | nobody holds       by what the kernels have
//	pi2 is drained                 its role, or its grade
//	pi2 because handed_over        the reason of its last change
//	pi2 sees pi3 drained           the grade of another board
//	pi2 shows "…" "…"              a problem with these words in it; pi2 shows nothing: it has none
//	pi2 logs "…"
//	moves 0                        since the boards have agreed, or since the line mark
//
// Quotes are as in Go: "…", or `…` for a text in which nothing is special. In a value, {pi1} is the address of a board. At no time may two
// boards hold the address, but from the line "two may hold" until the line mark.
package scene
