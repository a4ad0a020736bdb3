package page

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

var printedURL = regexp.MustCompile(`http://\S+\n`)

// serve runs topdog on the client, where it serves a page, and returns the URL that it prints.
func (s *stage) serve(t *testing.T, args ...string) (address string) {
	t.Helper()
	s.build(t)
	output := new(safeBuffer)
	p, err := s.LAN.Client().Start(context.Background(), s.program.Path, args, netns.Stdout(output), netns.Stderr(output), netns.Nice(cluster.ServiceNice))
	must(t, err)
	t.Cleanup(func() {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := p.Wait(); err != nil || t.Failed() {
			t.Errorf("topdog %v ended with %v, and said:\n%s", args, err, output)
		}
	})
	deadline := time.After(tabTimeout)
	for {
		if found := printedURL.FindString(output.String()); strings.HasSuffix(found, "\n") {
			return strings.TrimSpace(found)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.Exited():
			t.Fatalf("topdog %v has ended: %s", args, output)
		case <-deadline:
			t.Fatalf("topdog %v prints no URL: %s", args, output)
		}
	}
}
