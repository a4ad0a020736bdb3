// Package animation draws the moving picture of the README from a recording of the demo.
//
// Nothing in the picture is made up. Roles, lights, cables, the address and the client's answers
// are those of the recording, at their times. Around each outage the picture goes slower, by a
// factor that stands in it: see [clock].
//
// The picture is an SVG with CSS animations, which need no script and work in an <img>. All of
// them last as long as the picture and begin together, so any moment of it is one negative
// animation-delay away. Where nothing is to move, it shows the moment after the first takeover.
package animation
