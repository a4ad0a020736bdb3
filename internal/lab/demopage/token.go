package demopage

import "crypto/rand"

// NewToken makes the token of a page: 128 bits and more that nobody guesses.
func NewToken() string { return rand.Text() }

// Fragment is what stands behind the # of a URL whose user may act.
func Fragment(token string) string { return "token=" + token }
