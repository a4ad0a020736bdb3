package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
)

// shared are the files that all pages use: how they look, and what their scripts have in common.
//
//go:embed shared
var shared embed.FS

// index is the file that the path "/" shows.
const index = "index.html"

// Assets are the files of a page. They are in the program, and never change while it runs.
type Assets struct {
	routes  []Route
	version string
}

// contentTypes are those of the files that a page may consist of. The system's table of types is
// not asked: a small board may have none.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// NewAssets takes the files of a directory, and the shared ones.
func NewAssets(files fs.FS, directory string) (*Assets, error) {
	a := &Assets{}
	sum := sha256.New()
	for _, source := range []struct {
		files     fs.FS
		directory string
	}{{files, directory}, {shared, "shared"}} {
		entries, err := fs.ReadDir(source.files, source.directory)
		if err != nil {
			return nil, fmt.Errorf("read the files of the page: %w", err)
		}
		for _, entry := range entries {
			content, err := fs.ReadFile(source.files, path.Join(source.directory, entry.Name()))
			if err != nil {
				return nil, fmt.Errorf("read the files of the page: %w", err)
			}
			route, err := asset(entry.Name(), content)
			if err != nil {
				return nil, err
			}
			sum.Write(content)
			a.routes = append(a.routes, route)
		}
	}
	a.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return a, nil
}

// Routes serve the files.
func (a *Assets) Routes() []Route { return a.routes }

// Version changes with the content of any file.
func (a *Assets) Version() string { return a.version }

// asset is the route of a file.
func asset(name string, content []byte) (Route, error) {
	kind, known := contentTypes[path.Ext(name)]
	if !known {
		return Route{}, fmt.Errorf("the file %s of the page is of no known type", name)
	}
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	at := "/" + name
	if name == index {
		at = "/"
	}
	return Route{Path: at, Serve: func(w http.ResponseWriter, r *http.Request) error {
		h := w.Header()
		h.Set("Cache-Control", "no-cache") // it is kept, and asked for again: an update shows at once
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		h.Set("Content-Type", kind)
		_, _ = w.Write(content) // a client that has gone is no failure
		return nil
	}}, nil
}
