// Package lint has the tests of the tree: which package imports which, what is exported for nobody, and whether the
// documents name what the program says. They run nothing, so they are apart from the tests of daemons.
package lint
