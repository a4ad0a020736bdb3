// Package web serves pages and their data over HTTP to browsers and programs on the LAN. It knows nothing of boards: a
// page brings its routes. The sockets of internal/console use what they need of it: routes, refusals and limits.
//
// It has what all pages of topdog need, since anybody on the LAN may connect:
//
//   - limits for connections, in all and for each client, and for the time and the bytes of a request (server.go);
//   - a check of the host: a request that names another host than this machine is refused. Otherwise another site could
//     have its own name resolve to this address, and read what is here (DNS rebinding; route.go);
//   - headers that say what a browser may do with an answer: the Content Security Policy and the like (route.go);
//   - refusals in JSON (route.go);
//   - the files of a page, which are part of the program (asset.go).
package web
