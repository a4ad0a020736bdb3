package page

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

var printedURL = regexp.MustCompile(`http://\S+\n`)

// buildLab builds topdog with the demonstration and the simulator, which boards do not have, once for all tests.
func (s *stage) buildLab(t *testing.T) {
	t.Helper()
	if s.lab != "" {
		return
	}
	path := filepath.Join(s.dir, "topdog-lab")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/topdog")
	c.Dir = repository
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build topdog: %v\n%s", err, out)
	}
	s.lab = path
}

// serve runs topdog on the client, where it serves a page, and returns the URL that it prints.
func (s *stage) serve(t *testing.T, args ...string) (address string) {
	t.Helper()
	s.buildLab(t)
	output := new(safeBuffer)
	p, err := s.LAN.Client().Start(context.Background(), s.lab, args, netns.Stdout(output), netns.Stderr(output), netns.Nice(cluster.ServiceNice))
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
