// Command manual writes topdog's manual pages; see package manual.
package main

import "topdog/internal/lab/manual"

func main() { manual.Main() }
