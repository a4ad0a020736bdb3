// Package web serves pages and their data over HTTP to browsers and programs on the LAN. It
// knows nothing of boards: a page brings its routes.
//
// What all pages of topdog share is here, since anybody on the LAN may connect:
//
//   - limits: connections in all and per address, the time and the bytes of a request (server.go);
//   - hosts: a request that names a host that is not this machine is refused. Otherwise a page
//     elsewhere could have its own name resolve to this address, and read what is here (DNS
//     rebinding; route.go);
//   - what a browser may do with an answer: the Content Security Policy and the like (route.go);
//   - refusals, which are JSON as on the control socket (route.go);
//   - files of a page, which are in the program (asset.go).
package web
