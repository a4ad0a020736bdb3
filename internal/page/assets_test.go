package page

import (
	"net/http/httptest"
	"testing"
)

// A phone on bad Wi-Fi loads the page in a second, and whoever reads its sources is done in an hour.
func TestAssetsAreSmall(t *testing.T) {
	const limit = 60_000
	assets, err := newAssets()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, route := range assets.Routes() {
		w := httptest.NewRecorder()
		if err := route.Serve(w, httptest.NewRequest("GET", route.Path, nil)); err != nil {
			t.Fatal(err)
		}
		total += w.Body.Len()
	}
	if total > limit || total == 0 {
		t.Errorf("the page has %d bytes, and may have %d", total, limit)
	}
}
