// Command testreport says which tests did not pass; see package testreport.
package main

import "topdog/internal/lab/testreport"

func main() { testreport.Main() }
