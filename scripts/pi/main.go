// Command pi runs a lab of emulated Raspberry Pis; scripts/pilab builds and starts it.
package main

import "topdog/internal/lab/pi/pilab"

func main() { pilab.Main() }
