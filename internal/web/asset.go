package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"net/http"
	"path"
)

// shared are the files that all pages use: the style, and what the scripts have in common.
//
//go:embed shared
var shared embed.FS

// index is the file for the path "/".
const index = "index.html"

// contentTypes are the types of the files that a page may have. A small board may lack the system's table of types.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Assets returns a route for each file that the sources have in a directory, and for each of the shared ones. The files are
// part of the program, so they never change while it runs. The version is a text that changes with the content of any file.
func Assets(directory string, sources ...fs.FS) (routes Routes, version string, err error) {
	sum := sha256.New()
	for _, source := range sources {
		if routes, err = appendAssets(routes, source, directory, sum); err != nil {
			return nil, "", err
		}
	}
	if routes, err = appendAssets(routes, shared, "shared", sum); err != nil {
		return nil, "", err
	}
	return routes, hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// appendAssets appends the routes of the files of a directory, and writes their content into a sum.
func appendAssets(routes Routes, source fs.FS, directory string, sum hash.Hash) (Routes, error) {
	entries, err := fs.ReadDir(source, directory)
	if err != nil {
		return nil, fmt.Errorf("read the files of the page: %w", err)
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(source, path.Join(directory, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the files of the page: %w", err)
		}
		route, err := asset(entry.Name(), content)
		if err != nil {
			return nil, err
		}
		sum.Write(content)
		routes = append(routes, route)
	}
	return routes, nil
}

// asset returns the route of a file.
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
		w.Header().Set("Content-Type", kind)
		WriteTagged(w, r, tag, content)
		return nil
	}}, nil
}

// WriteTagged answers with a content that the browser keeps. Each time, the browser asks by the tag whether the content has
// changed, so a new content shows at once.
func WriteTagged(w http.ResponseWriter, r *http.Request, tag string, content []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(content) // a client that has gone is no failure
}
