// Package demopage is the demonstration in the browser: it serves the page of `topdog demo --page`, and
// hands what a person wants done to whoever has the boards (see [Source]). It knows nothing of boards.
//
// The page is the only one of topdog that acts, so what may act is narrow: POST with JSON, from a
// page of this host, by somebody who has the token of the printed URL (page.go). Anybody may look.
//
// Where the boards need root, the process that talks to browsers has no privileges: it is a child that passes the
// requests on to its parent, which answers them (child.go, link.go).
package demopage
