// Command soak does to a group of boards, for hours, whatever can happen to one; see package soak.
package main

import "topdog/internal/lab/soak"

func main() { soak.Main() }
