// Package recipes tests docs/recipes with the services that they are about.
//
// The configurations are read from the pages: each fenced block that begins with a language and a
// path is the file of that path. So what people copy is what was run. Three boards run the service
// and topdog in network namespaces, and a client asks at the floating address while the leader's
// service is killed, frozen and started again. There are only tests here.
package recipes
