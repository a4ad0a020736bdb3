package page

import (
	"embed"

	"topdog/internal/web"
)

// files are the page. A browser gets them as they are; there is nothing to build.
//
//go:embed assets
var files embed.FS

func newAssets() (*web.Assets, error) { return web.NewAssets(files, "assets") }
