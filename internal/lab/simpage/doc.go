// Package simpage serves `topdog sim --page`: the algorithms of the literature in the browser, for
// a class. A browser asks for a run with a few choices, and gets all that happened in it.
//
// Nothing is shown that did not happen. Each answer is one run of the simulator, with the command
// line that repeats it: the choices become flags of `topdog sim run` (line.go), and these are read and
// played as there (run.go). So what the page counts is what the command counts.
//
//   - choice.go reads what was chosen from the query of a request, and choices.go says what may be chosen;
//   - failure.go has what may fail, as flags; example.go the runs for which a paper prints a figure;
//   - step.go makes a line for each event, and words.go says in words what it is;
//   - figure.go puts the figures of the papers beside what was counted;
//   - about.go has what the page says of the algorithms;
//   - worker.go computes one thing at a time, for whoever still waits for it.
package simpage
