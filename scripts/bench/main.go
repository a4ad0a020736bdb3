// Command bench measures topdog side by side with keepalived and UCarp; see package bench.
package main

import "topdog/internal/lab/bench"

func main() { bench.Main() }
