package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// limitedRecorder notes the deadlines that are set for writing.
type limitedRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (r *limitedRecorder) SetWriteDeadline(at time.Time) error {
	r.deadlines = append(r.deadlines, at)
	return nil
}

// TestTryTakesItsTime: checks may take longer than an answer may, and the answer has its time after that.
func TestTryTakesItsTime(t *testing.T) {
	recorder := &limitedRecorder{ResponseRecorder: httptest.NewRecorder()}
	s := newTestServer(t, fake{try: func(TryRequest) (Tried, error) {
		if len(recorder.deadlines) != 1 || !recorder.deadlines[0].IsZero() {
			t.Errorf("the deadlines while checks are tried: %v", recorder.deadlines)
		}
		return Tried{Checks: []TriedCheck{}}, nil
	}})
	ctx := context.WithValue(t.Context(), credentialsKey{}, credentials{})
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, pathTry, strings.NewReader("{}"))
	began := time.Now()
	assert.NoError(t, s.serveTry(&answer{ResponseWriter: recorder}, request))
	if n := len(recorder.deadlines); n != 2 || recorder.deadlines[1].Before(began.Add(s.limits.write)) {
		t.Errorf("the deadlines: %v", recorder.deadlines)
	}
	assert.Is(t, "{\"checks\":[]}\n", recorder.Body.String(), "the answer")
}
