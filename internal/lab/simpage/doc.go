// Package simpage serves `topdog sim --page`: the algorithms of the literature in the browser, for
// a class. A browser asks for a run with a few choices, and gets all that happened in it.
//
// Nothing is shown that did not happen. Each answer is one run of the simulator, with the command
// line that repeats it: the choices become flags of `topdog sim run` (line.go), and these are read and
// played as there (run.go). So what the page counts is what the command counts.
//
//   - choice.go has what may be chosen, and reads what was;
//   - failure.go has what may fail, as flags; figure.go the figures that papers print, and the runs for which they do;
//   - step.go makes a line for each event, and words.go says in words what it is. What it means, and what the page says of the
//     algorithms, is in words.toml;
//   - worker.go computes one thing at a time, for whoever still waits for it.
package simpage
