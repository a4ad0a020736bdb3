// Command attack does to a group of boards what a laptop on their LAN and a user of a board can do; see package attack.
package main

import "topdog/internal/lab/attack"

func main() { attack.Main() }
