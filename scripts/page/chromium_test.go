package page

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"topdog/internal/lab/netns"
)

const (
	// endTimeout is how long chromium has to end when it is told to.
	endTimeout = 5 * time.Second
	// startTimeout is how long it has to start. On a quiet machine it is less than a second.
	startTimeout = 30 * time.Second
)

// chromiumNice is its priority: a browser is elsewhere than the boards, and must not make their leader late.
const chromiumNice = 10

// chromiumFlags are those of every run. Nothing but the pages of the test may be asked of the
// network, colours are the same everywhere, and no tab is slowed down because nobody looks at it.
var chromiumFlags = []string{
	"--headless=new",
	"--no-sandbox", // it does not run as root otherwise
	"--remote-debugging-pipe",
	"--disable-gpu",
	"--disable-dev-shm-usage",
	"--disable-background-networking",
	"--disable-background-timer-throttling",
	"--disable-backgrounding-occluded-windows",
	"--disable-renderer-backgrounding",
	"--disable-breakpad",
	"--disable-component-update",
	"--disable-default-apps",
	"--disable-extensions",
	"--disable-sync",
	"--enable-blink-features=ComputedAccessibilityInfo", // computedName and computedRole, for the rules
	"--force-color-profile=srgb",
	"--hide-scrollbars",
	"--metrics-recording-only",
	"--no-default-browser-check",
	"--no-first-run",
	"--no-proxy-server",
	"--password-store=basic",
	"--window-size=1280,900",
}

// chromium is a browser on a host of the LAN.
type chromium struct {
	process *netns.Process
	pipe    *chromedp.PipeConn
	profile string
	output  *safeBuffer
}

// startChromium starts a browser on a host. It ends with the test, and leaves nothing.
func startChromium(t *testing.T, host *netns.Host) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: apt-get install chromium")
	}
	// It asks with what it reads as descriptor 3, and answers on descriptor 4.
	theirRead, ourWrite, err := os.Pipe()
	must(t, err)
	ourRead, theirWrite, err := os.Pipe()
	must(t, err)
	defer theirRead.Close()
	defer theirWrite.Close()

	c := &chromium{pipe: chromedp.NewPipeConn(ourRead, ourWrite), profile: t.TempDir(), output: new(safeBuffer)}
	args := append([]string{"--user-data-dir=" + c.profile}, chromiumFlags...)
	// HOME: what it writes beside its profile goes with it.
	c.process, err = host.Start(context.Background(), path, append(args, "about:blank"), netns.Files(theirRead, theirWrite),
		netns.Env("HOME="+c.profile), netns.Nice(chromiumNice), netns.Stdout(c.output), netns.Stderr(c.output))
	if err != nil {
		c.pipe.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(t) })
	return c
}

// end ends the browser and all processes that it has started: they have its process group, except
// those that have left it, which end when the LAN is closed.
func (c *chromium) end(t *testing.T) {
	select {
	case <-c.process.Exited():
		t.Errorf("chromium has ended by itself, and said:\n%s", c.output)
	default:
	}
	c.pipe.Close() // which it takes as the order to end
	select {
	case <-c.process.Exited():
	case <-time.After(endTimeout):
		t.Errorf("chromium has not ended within %v", endTimeout)
	}
	if err := syscall.Kill(-c.process.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
	_ = c.process.Wait() // "signal: killed", if it had to be
}

// browserContext is that of the browser. Contexts that are made of it are tabs (chromedp.NewContext).
func (c *chromium) browserContext(t *testing.T) context.Context {
	t.Helper()
	parent, cancel := chromedp.NewAllocatorContext(context.Background(), allocator{c})
	ctx, cancelFirst := chromedp.NewContext(parent)
	t.Cleanup(func() {
		cancelFirst()
		cancel()
	})
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(ctx) }()
	select {
	case err := <-started:
		must(t, err)
	case <-time.After(startTimeout):
		t.Fatalf("chromium has not started within %v", startTimeout)
	}
	return ctx
}

// allocator gives chromedp the browser that runs already.
type allocator struct{ *chromium }

func (a allocator) Allocate(_ context.Context, options ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return chromedp.NewBrowserTransport(context.Background(), a.pipe, options...)
}

// Wait has nothing to wait for: see chromium.end.
func (allocator) Wait() {}

// Attaches says that chromedp has not started the browser, and need not end it.
func (allocator) Attaches() bool { return true }

// safeBuffer keeps what is printed by a process. The first lines say what is wrong.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len() < 1<<16 {
		b.text.Write(p)
	}
	return len(p), nil
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
