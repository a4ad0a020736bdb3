package svg

import (
	"fmt"
	"unicode/utf8"
)

// Colour is one colour on white and on black.
type Colour struct{ Light, Dark string }

// The colours are those of Okabe and Ito, which colour-blind people can tell apart: on white
// some of them darker, on black lighter, so that words in them are legible.
var (
	Blue   = Colour{"#0072b2", "#56b4e9"}
	Red    = Colour{"#c03a00", "#ff8a5c"}
	Green  = Colour{"#00795a", "#4fd0a8"}
	Purple = Colour{"#8a3d73", "#d99ac0"}
	Orange = Colour{"#a85b00", "#e69f00"}

	Ink   = Colour{"#222222", "#e6e8eb"} // words
	Faint = Colour{"#5f6368", "#a4abb3"} // words that matter less
	Grid  = Colour{"#e3e5e8", "#333a42"} // lines behind the figures
	Band  = Colour{"#f4f5f7", "#1d2127"} // a part of a diagram that is set apart
	Paper = Colour{"#ffffff", "#14171b"}
)

// TextStyle is the CSS of all words, on white. More is put behind it.
func TextStyle(pixels int, more string) string {
	return fmt.Sprintf(`text{font:%dpx "DejaVu Sans",Verdana,sans-serif;fill:%s%s}`, pixels, Ink.Light, more)
}

// DarkStyle is CSS for readers whose screen prefers dark colours.
func DarkStyle(rules string) string { return "@media(prefers-color-scheme:dark){" + rules + "}" }

// LetterWidth is about the mean width of a letter that is 11 or 12 high, in DejaVu Sans,
// which is among the wide fonts.
const LetterWidth = 6.7

// TextWidth guesses how wide words get, without a font at hand.
func TextWidth(words string) float64 { return LetterWidth * float64(utf8.RuneCountInString(words)) }
