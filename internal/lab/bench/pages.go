package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/netns"
)

const (
	// openPages is how many browsers have the page open at the address.
	openPages = 100
	// A page asks so often, and gives a request up after so long; as internal/page/assets/page.js.
	pageAskEvery   = 500 * time.Millisecond
	pageGivesUp    = 700 * time.Millisecond
	pageStatusPath = "/v1/status"
)

// browsers are the browsers of a client's machine. Each has connections of its own.
type browsers struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	shown []shown // by browser
}

// shown is whom a page shows as the leader, and since when.
type shown struct {
	leader string
	since  time.Time
}

func openBrowsers(client *netns.Host) *browsers {
	ctx, stop := context.WithCancel(context.Background())
	all := &browsers{stop: stop, shown: make([]shown, openPages)}
	for i := range all.shown {
		all.wg.Go(func() { all.browse(ctx, client, i) })
	}
	return all
}

func (all *browsers) close() {
	all.stop()
	all.wg.Wait()
}

// browse is one browser: it asks, and shows what it was told.
func (all *browsers) browse(ctx context.Context, client *netns.Host, i int) {
	transport := &http.Transport{DialContext: client.Dial}
	defer transport.CloseIdleConnections()
	asks := &http.Client{Transport: transport, Timeout: pageGivesUp}
	// They were not opened at the same moment.
	next, tag := time.Duration(i)*pageAskEvery/openPages, ""
	for wait(ctx, next) == nil {
		asked := time.Now()
		if leader, newTag, err := askPage(ctx, asks, tag); err == nil {
			tag = newTag
			all.mu.Lock()
			if all.shown[i].leader != leader && leader != "" {
				all.shown[i] = shown{leader, time.Now()}
			}
			all.mu.Unlock()
		}
		next = time.Until(asked.Add(pageAskEvery))
	}
}

// askPage asks who leads. If nothing has changed since the last answer, it is nobody.
func askPage(ctx context.Context, by *http.Client, tag string) (leader, newTag string, err error) {
	at := netip.AddrPortFrom(vip, config.Defaults().PageListen.Port)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+pageStatusPath, nil)
	if err != nil {
		return "", tag, err
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	answer, err := by.Do(request)
	if err != nil {
		return "", tag, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNotModified:
		return "", tag, nil
	case http.StatusOK:
	default:
		return "", tag, fmt.Errorf("the page answers %s", answer.Status)
	}
	var status struct {
		LeaderName string `json:"leader_name"`
	}
	err = json.NewDecoder(answer.Body).Decode(&status)
	return status.LeaderName, answer.Header.Get("ETag"), err
}

// awaitOther waits until no page shows a board as the leader any more, and returns when the last one
// began to show another.
func (all *browsers) awaitOther(ctx context.Context, old *board) (latest time.Time, err error) {
	for deadline := time.Now().Add(exitTimeout); time.Now().Before(deadline); {
		still := 0
		all.mu.Lock()
		for _, s := range all.shown {
			if s.leader == fmt.Sprintf("pi%d", old.Number) || s.leader == "" {
				still++
			}
			latest = later(latest, s.since)
		}
		all.mu.Unlock()
		if still == 0 {
			return latest, nil
		}
		if err := wait(ctx, pollInterval); err != nil {
			return latest, err
		}
	}
	return latest, fmt.Errorf("not all pages show another leader than pi%d after %v", old.Number, exitTimeout)
}
