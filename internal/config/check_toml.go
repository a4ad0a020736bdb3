package config

import (
	"fmt"
	"strings"
	"time"

	"topdog/internal/check"
)

// tomlChecks writes checks as a list of inline tables, without what is the default.
func tomlChecks(checks []check.Check) string {
	texts := make([]string, len(checks))
	for i := range checks {
		texts[i] = "{ " + tomlCheck(&checks[i]) + " }"
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func tomlCheck(c *check.Check) string {
	parts := []string{c.Kind.String() + " = " + tomlTarget(c)}
	add := func(key, value, usual string) {
		if value != usual {
			parts = append(parts, key+" = "+value)
		}
	}
	add("title", Quote(c.Title), Quote(""))
	add("every", tomlText(c.Every), tomlText(check.DefaultEvery))
	add("timeout", tomlText(c.Timeout), tomlText(c.Every))
	add("rise", fmt.Sprint(c.Rise), fmt.Sprint(check.DefaultRise))
	add("fall", fmt.Sprint(c.Fall), fmt.Sprint(check.DefaultFall))
	add("when", tomlText(c.When), tomlText(check.Always))
	usual := time.Duration(0)
	if c.When == check.Leading {
		usual = check.DefaultGrace
	}
	add("grace", tomlText(c.Grace), tomlText(usual))
	return strings.Join(parts, ", ")
}

// tomlTarget writes the value that says what is looked at.
func tomlTarget(c *check.Check) string {
	var parts []string
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, key+" = "+Quote(value))
		}
	}
	switch {
	case c.Kind == check.Gateway:
		return "true"
	case c.Kind == check.Command:
		return tomlList(append([]string{c.Target}, c.Arguments...))
	case c.Kind == check.Exec && c.User != "":
		add("path", c.Target)
		add("user", c.User)
	case c.Kind == check.HTTP:
		add("url", c.Target)
		add("host", c.Host)
		add("contains", c.Contains)
		if len(c.Status) > 0 {
			parts = append(parts, "status = "+strings.ReplaceAll(fmt.Sprint(c.Status), " ", ", "))
		}
	default:
		return Quote(c.Target)
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
