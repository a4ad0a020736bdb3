package setup

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// dialog asks a person at a terminal.
type dialog struct {
	lines *bufio.Scanner
	out   io.Writer
}

func newDialog(in io.Reader, out io.Writer) dialog { return dialog{bufio.NewScanner(in), out} }

// ask asks one question until the answer suits. usual is what an empty answer means, or "". If the
// input ends, it returns the error ended.
func (d dialog) ask(question, usual string, suits func(string) error, ended error) (string, error) {
	if usual != "" {
		question += " [" + usual + "]"
	}
	for {
		fmt.Fprintf(d.out, "%s: ", question)
		if !d.lines.Scan() {
			return "", ended
		}
		text := strings.TrimSpace(d.lines.Text())
		if text == "" {
			text = usual
		}
		if text == "" {
			continue
		}
		err := suits(text)
		if err == nil {
			return text, nil
		}
		fmt.Fprintf(d.out, "%v\n", err)
	}
}
