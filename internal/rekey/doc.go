// Package rekey changes the key of a group, on one board, so that the address stays where it is.
//
// Each step is done on all boards before the next one begins:
//
//	add     the board accepts the new key as well
//	first   it signs with the new key, which all boards accept by then
//	drop    it accepts the new key only, with which all boards sign by then
//
// A step changes the key file, and has the daemon read it. Whether the step before it was done on
// all boards the daemon knows: every board tells which keys it accepts. Each step but the last can be
// undone by the same means, since both keys are accepted meanwhile.
//
// The new key goes from one board to another by ssh, never by the group's own packets: whoever
// has stolen the old key could read it there.
package rekey
