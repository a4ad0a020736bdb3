package web

import "net/http"

// policy allows a page its own files and nothing else: no script or style in the text, no request
// to anywhere else, no form, and no page around it (Content Security Policy Level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// protect says what a browser may do with an answer. There is no Cross-Origin-Opener-Policy:
// browsers ignore it without HTTPS, and say so on the console of every page.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
