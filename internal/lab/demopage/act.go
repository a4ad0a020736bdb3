package demopage

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"topdog/internal/web"
)

// tokenHeader has the token. A page elsewhere cannot set it: a browser asks this host first whether it
// may (CORS), and never gets a yes.
const tokenHeader = "Topdog-Token"

// actWithin bounds how long an action may take, its time in the queue included.
const actWithin = 5 * time.Second

// act does what a person wants done.
func (p *pages) act(w http.ResponseWriter, r *http.Request) error {
	if err := p.mayAct(r); err != nil {
		return err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return &web.Error{Code: http.StatusRequestEntityTooLarge, Message: "the request is too long, or did not come whole"}
	}
	a, err := ReadAction(text, p.options.Boards)
	if err != nil {
		return &web.Error{Code: http.StatusBadRequest, Message: err.Error(), Hint: "docs/demo.md has all actions"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), actWithin)
	defer cancel()
	if err := p.source.Act(ctx, a); err != nil {
		return refused(err)
	}
	return web.WriteJSON(w, http.StatusOK, a)
}

// refused is an error of a Source as the client is told.
func refused(err error) error {
	refusal, ok := refusalOf(err)
	switch {
	case !ok:
		return err
	case refusal.Busy:
		return &web.Error{Code: http.StatusTooManyRequests, Message: refusal.Text, Hint: "wait until the last action is done"}
	}
	return &web.Error{Code: http.StatusConflict, Message: refusal.Text}
}

// mayAct refuses whoever may only look.
func (p *pages) mayAct(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	origin := r.Header.Get("Origin")
	switch {
	case err != nil || kind != "application/json":
		return &web.Error{Code: http.StatusUnsupportedMediaType, Message: "an action is JSON", Hint: "set Content-Type: application/json"}
	case origin != "http://"+r.Host:
		return &web.Error{Code: http.StatusForbidden, Message: fmt.Sprintf("the origin %q is not this page", origin),
			Hint: "only the page itself may act: open the URL that `topdog demo --page` has printed"}
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(p.options.Token)) != 1:
		return &web.Error{Code: http.StatusForbidden, Message: "without the token one may only look",
			Hint: "open the whole URL that `topdog demo --page` has printed, with what is behind the #"}
	}
	return nil
}
