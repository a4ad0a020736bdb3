package page

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

var pictures = flag.String("screenshots", "", "draw the pictures of the documentation anew, into this `directory`, such as ../../docs")

const (
	// pictureBytes is how large a picture may be. It is in the repository for ever.
	pictureBytes = 150_000
	// pictureColours are those of a PNG with a palette, which is a third as large as one without.
	pictureColours = 256
)

// testPictures draws those of the page of a board, whose words are in docs/page.md.
func testPictures(t *testing.T, s *stage) {
	f := newFakeBoard(t, s)
	b := s.open(t, f.address)
	status := documented(t)
	takeOver(&status)
	f.set(status, nil)
	b.reads("is held by pi2")
	b.picture(t, "page/wide.png", laptop)
	status = documented(t)
	fail(&status)
	f.set(status, nil)
	b.reads("did not answer within 1 s")
	b.picture(t, "page/phone.png", phone.dark().sharp())
}

// picture writes what the tab shows to a file of the documentation, if pictures are wanted. The lights
// of leaders are lit in it, and those of followers are not.
func (b *tab) picture(t *testing.T, name string, l look) {
	t.Helper()
	if *pictures == "" {
		return
	}
	b.lookAs(l)
	b.run("scrollTo(0, 0); for (const a of document.getAnimations()) { a.pause(); a.currentTime = 100; }")
	b.settle()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must(t, err)
	b.run("for (const a of document.getAnimations()) a.play()")
	text, err := small(shot)
	must(t, err)
	if len(text) > pictureBytes {
		t.Errorf("the picture %s has %d bytes, and may have %d", name, len(text), pictureBytes)
	}
	file := filepath.Join(*pictures, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, text, 0o644))
}

// small is a PNG with the colours that are seen most.
func small(shot []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	few := image.NewPaletted(full.Bounds(), frequent(full))
	draw.Draw(few, few.Bounds(), full, full.Bounds().Min, draw.Src)
	var text bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&text, few)
	return text.Bytes(), err
}

// frequent are the colours of most pixels. Those that differ in the last two bits only are one.
func frequent(m image.Image) (most color.Palette) {
	count := map[color.RGBA]int{}
	first := map[color.RGBA]color.RGBA{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			c := color.RGBAModel.Convert(m.At(x, y)).(color.RGBA)
			key := color.RGBA{c.R &^ 3, c.G &^ 3, c.B &^ 3, 255}
			if count[key]++; count[key] == 1 {
				first[key] = c
			}
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for key := range count {
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return count[b] - count[a] })
	for _, key := range all[:min(len(all), pictureColours)] {
		most = append(most, first[key])
	}
	return most
}
