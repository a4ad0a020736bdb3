package monitoring

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// ofTheMachine are alerts that tell of the machine on which this test runs, which stands still at times, and of how fast the test
// is. promtool tests them.
var ofTheMachine = []string{"TopdogMorePatience", "TopdogHeartbeatsLost", "TopdogOutageLong", "TopdogLeaderChangesOften"}

// Prometheus, set up as the page says, watches three boards which lose a cable, a service, and their daemons. The alerts
// fire that should, and no others.
func TestAlertsFire(t *testing.T) {
	prometheus, haproxy := installed(t, "prometheus", "prometheus"), installed(t, "haproxy", "haproxy")
	judge.Run(t, func(t *judge.T) {
		r := newRig(t)
		r.observe(prometheus)
		r.proxy(haproxy)
		first := r.agree(r.boards...)
		r.passing()
		r.asked()
		r.calm()
		r.dashboard()
		r.reaches(first)

		assert.NoError(t, first.Pull())
		second := r.agree(r.except(first)...)
		r.fires("TopdogBoardMissing "+first.String(), "TopdogTargetDown "+first.String())
		r.reaches(second)

		assert.NoError(t, os.Remove(second.works))
		r.fires("TopdogBoardMissing "+first.String(), "TopdogTargetDown "+first.String(),
			"TopdogBoardFailing "+second.String(), "TopdogCheckFailing "+second.String(), "TopdogNoSpareBoard")
		r.explained()

		assert.NoError(t, first.Plug())
		assert.NoError(t, os.WriteFile(second.works, nil, 0o644))
		third := r.agree(r.boards...)
		r.fires()
		r.reaches(third)

		assert.NoError(t, third.Signal(syscall.SIGKILL))
		r.fires("TopdogDaemonDown "+third.String(), "TopdogBoardMissing "+third.String())
		want := []string{"TopdogDaemonDown " + third.String(), "TopdogNobodyLeads"}
		for _, b := range r.except(third) {
			assert.NoError(t, b.Signal(syscall.SIGKILL))
			want = append(want, "TopdogDaemonDown "+b.String())
		}
		r.fires(want...)
	})
}

// passing waits until all boards could lead.
func (r *rig) passing() {
	r.t.Helper()
	for _, b := range r.boards {
		r.until(b.String()+" is fit", func() string {
			code, body, err := r.get(b.Addr.Addr(), 9254, "/fit")
			if err != nil || code != http.StatusOK {
				return fmt.Sprint(code, err, string(body))
			}
			return ""
		})
	}
}

// calm holds that nothing fires, or is about to, while all is well. At first Prometheus has asked one board and not the others
// yet, which passes while nobody looks.
func (r *rig) calm() {
	r.t.Helper()
	<-time.After(quiet)
	result, err := r.evaluate(`count by (alertname, instance, alertstate) (count_over_time(ALERTS[2s]))`)
	assert.NoError(r.t, err)
	for _, s := range result {
		if !slices.Contains(ofTheMachine, s.Metric["alertname"]) {
			r.t.Errorf("all is well, and this alert is not silent: %v", s.Metric)
		}
	}
}

// alert is one that Prometheus tells of.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// about names the board that an alert is about, if it is about one.
func (r *rig) about(a *alert) string {
	for _, b := range r.boards {
		if a.Labels["instance"] == b.Addr.Addr().String()+":9254" {
			return b.String()
		}
	}
	return a.Labels["name"]
}

// firing are the alerts that fire, and what they are about.
func (r *rig) firing() (all []alert, names []string, err error) {
	var data struct{ Alerts []alert }
	if err := r.ask("/api/v1/alerts", &data); err != nil {
		return nil, nil, err
	}
	for _, a := range data.Alerts {
		if a.State == "firing" && !slices.Contains(ofTheMachine, a.Labels["alertname"]) {
			all = append(all, a)
			names = append(names, strings.TrimSpace(a.Labels["alertname"]+" "+r.about(&a)))
		}
	}
	slices.Sort(names)
	return all, names, nil
}

// fires waits until these alerts fire, and no others.
func (r *rig) fires(want ...string) {
	r.t.Helper()
	slices.Sort(want)
	began := time.Now()
	r.until("alerts", func() string {
		_, got, err := r.firing()
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(want, got)
	})
	r.t.Logf("%.1f s: %q after %.1f s", time.Since(r.began).Seconds(), want, time.Since(began).Seconds())
}

// explained holds that the texts of all alerts that fire have what they were to be filled with.
func (r *rig) explained() {
	r.t.Helper()
	all, _, err := r.firing()
	assert.NoError(r.t, err)
	for _, a := range all {
		for key, text := range a.Annotations {
			if text == "" || strings.Contains(text, "<no value>") || strings.Contains(text, "{{") || strings.Contains(text, "()") {
				r.t.Errorf("%s: %s: %q", a.Labels["alertname"], key, text)
			}
		}
		r.t.Logf("%s: %s", a.Labels["alertname"], a.Annotations["summary"])
	}
}

// dashboard asks all that the dashboard asks. What shows only failures and changes may be empty.
func (r *rig) dashboard() {
	r.t.Helper()
	for _, q := range queries(r.t) {
		expression := strings.NewReplacer("$job", "topdog", "$__rate_interval", "10s", "$__interval_ms", "1000", "$__interval", "1s").Replace(q.Expr)
		result, err := r.evaluate(expression)
		if err != nil {
			r.t.Errorf("%s: %v", expression, err)
		}
		quiet := strings.Contains(expression, "> 0") || strings.Contains(expression, "problems_by_kind") || strings.Contains(expression, "last_outage")
		if len(result) == 0 && !quiet {
			r.t.Errorf("there is nothing to see of %s", expression)
		}
	}
}

// proxy runs HAProxy on the client's machine as the page says, and a service on the boards that says which board it is.
func (r *rig) proxy(haproxy string) {
	r.t.Helper()
	for _, b := range r.boards {
		listener, err := netns.Within(b.Host, func() (net.Listener, error) { return net.Listen("tcp4", fmt.Sprintf(":%d", webPort)) })
		assert.NoError(r.t, err)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, b.String()) })}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		r.t.Cleanup(func() {
			server.Close()
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				r.t.Error(err)
			}
		})
	}
	file := filepath.Join(r.dir, "haproxy.cfg")
	debian := "defaults\n  mode http\n  timeout connect 1s\n  timeout client 5s\n  timeout server 5s\n"
	assert.NoError(r.t, os.WriteFile(file, []byte(debian+r.block("/etc/haproxy/haproxy.cfg")), 0o644))
	_, err := r.LAN.Client().Start(r.t.Context(), haproxy, []string{"-db", "-f", file}, netns.Stdout(r.log), netns.Stderr(r.log))
	assert.NoError(r.t, err)
}

// reaches waits until the proxy sends what it gets to a board.
func (r *rig) reaches(b *watched) {
	r.t.Helper()
	r.until("the proxy finds the leader", func() string {
		code, body, err := r.get(r.LAN.Client().Addr.Addr(), webPort, "/")
		if err != nil || code != http.StatusOK || string(body) != b.String() {
			return fmt.Sprintf("%d %q %v, not %s", code, body, err, b)
		}
		return ""
	})
}
