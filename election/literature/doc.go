// Package literature has the algorithms that the literature has for electing a leader,
// each written to be read next to its paper.
package literature
