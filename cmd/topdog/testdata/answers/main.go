// Answers is a small program that serves HTTP: whatever it is asked, it answers with the same text. The memory of
// the page is measured beside it.
package main

import (
	"log"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	// As the page does.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(25)
	text := strings.Repeat("x", 10_000) // as long as the status of ten boards
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "status.json", time.Time{}, strings.NewReader(text))
	})))
}
