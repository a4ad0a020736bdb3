// Package page tests the pages of topdog in a browser, as its users have it: chromium on the
// client of a LAN of network namespaces, of which the boards of the LAN are only as far as a cable.
//
//	cd scripts/page && go test . [-v] [-run TestPages/takeover] [-screenshots ../../docs]
//
// It needs root and Debian's package chromium. There is one browser for all tests, and its first
// start takes most of the time. What holds for every page is in check_test.go: that nothing comes
// on the console, that nothing is asked of another host, that nothing overflows or jumps, and the
// rules for people who do not see well or use no mouse (rules.js).
package page
