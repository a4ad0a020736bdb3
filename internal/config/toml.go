package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/gpio"
	"topdog/wire"
)

// Quote writes text as a TOML basic string (TOML 1.0, "String").
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			const digits = "0123456789ABCDEF"
			b.WriteString(`\u00`)
			b.WriteByte(digits[r>>4])
			b.WriteByte(digits[r&15])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tomlOptional leaves out the key of an empty text.
func tomlOptional(text string) string {
	if text == "" {
		return ""
	}
	return Quote(text)
}

// tomlAuto writes no duration as the one that follows from the heartbeat.
func tomlAuto(d time.Duration) string {
	if d == 0 {
		return Quote(auto)
	}
	return tomlText(d)
}

func tomlText[T fmt.Stringer](v T) string { return Quote(v.String()) }

func tomlPlain[T uint8 | bool](v T) string { return fmt.Sprint(v) }

func tomlList[T any](elements []T) string {
	texts := make([]string, len(elements))
	for i, e := range elements {
		texts[i] = Quote(fmt.Sprint(e))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func tomlID(id wire.ID) string {
	if id == wire.Nobody {
		return Quote(autoID)
	}
	return strconv.FormatUint(uint64(id), 10)
}

// tomlLED writes the default as everybody does, and other lights in full.
func tomlLED(spec gpio.Spec) string {
	if spec == gpio.Default {
		return `"ACT"`
	}
	return tomlText(spec)
}

func tomlLogLevel(level logrus.Level) string {
	for _, l := range logLevels {
		if l.level == level {
			return Quote(l.name)
		}
	}
	return ""
}
