// Command animation draws the moving picture of the README; see package animation.
package main

import "topdog/internal/lab/animation"

func main() { animation.Main() }
