package page

import (
	"net/http/httptest"
	"testing"

	"topdog/internal/lab/assert"
)

// A phone on bad Wi-Fi loads the page in a second, and whoever reads its sources is done in an hour.
func TestAssetsAreSmall(t *testing.T) {
	const limit = 60_000
	assets, err := newAssets()
	assert.NoError(t, err)
	total := 0
	for _, route := range assets.Routes() {
		w := httptest.NewRecorder()
		assert.NoError(t, route.Serve(w, httptest.NewRequest("GET", route.Path, nil)))
		total += w.Body.Len()
	}
	if total > limit || total == 0 {
		t.Errorf("the page has %d bytes, and may have %d", total, limit)
	}
}
