// Package demo shows topdog at work on one machine: a handful of boards, each of
// them a real internal/daemon.Daemon with the real election on real UDP, and a
// client that asks once a millisecond who answers at the floating address.
//
// On loopback it needs no privilege and no hardware. What a board would find on its
// machine is replaced as truthfully as loopback allows: a board whose cable is out
// neither hears nor is heard, and to hold the address is to have a socket bound to
// it. In network namespaces (see internal/lab/netns) nothing is replaced but the LED:
// cables, interfaces and the address are the kernel's.
//
// The boards are a stage (see internal/lab/scene): all that is done to them is a line of a scene, whether it is in the scene of
// the show, in that of the recording, or what a person does.
//
// [Play] plays the show and judges it; [Record] plays what the README shows as a moving picture; [Live] draws the boards on a
// terminal and lets a person pull cables; [Page] has a page on which everything can be done to them,
// which package demopage serves. There boards on loopback have a fence and a dead man's switch as well: they are
// played here, by the product's rules, so that a daemon that is killed or frozen leads to what it leads to on a board.
package demo
