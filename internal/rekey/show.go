package rekey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
	"unicode/utf8"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// Show prints the fingerprints of this board's keys, and what the others have told of theirs.
func (b Board) Show(ctx context.Context) error {
	file, err := config.LoadKeys(b.KeyFile)
	readable := err == nil
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	seen, asked := b.Daemon.Keys(ctx)
	switch {
	case !readable && asked != nil:
		return err
	case !readable:
		b.showKeys(seen.SignsWith, seen.AlsoAccepts)
	default:
		k := file.Fingerprints()
		b.showKeys(text(k.Signs), text(k.Also))
		if asked == nil && !same(&seen, file) {
			fmt.Fprintf(b.Out, "the daemon has others: it signs with %s%s; systemctl reload topdog has it read the file\n", seen.SignsWith, also(seen.AlsoAccepts))
		}
	}
	if asked != nil {
		fmt.Fprintf(b.Out, "what the other boards have is not known: %v\n", asked)
		return nil
	}
	b.showBoards(&seen)
	return nil
}

// text is a fingerprint for people; "" for none.
func text(f wire.Fingerprint) string {
	if f == 0 {
		return ""
	}
	return f.String()
}

func also(fingerprint string) string {
	if fingerprint == "" {
		return ""
	}
	return " and accepts " + fingerprint
}

func (b Board) showKeys(signs, also string) {
	fmt.Fprintf(b.Out, "%s signs\n", signs)
	if also != "" {
		fmt.Fprintf(b.Out, "%s accepted\n", also)
	}
}

// showBoards prints what the other boards have told, those that live first.
func (b Board) showBoards(k *console.Keys) {
	if len(k.Boards) == 0 {
		fmt.Fprintln(b.Out, "no other board was heard in the last day")
		return
	}
	const head = "BOARD"
	width := len(head)
	for i := range k.Boards {
		width = max(width, utf8.RuneCountInString(called(&k.Boards[i])))
	}
	row := func(board, signs, also, heard string) {
		fmt.Fprintf(b.Out, "%-*s  %-10s  %-11s  %s\n", width, board, signs, also, heard)
	}
	fmt.Fprintln(b.Out)
	row(head, "SIGNS WITH", "ACCEPTS TOO", "HEARD")
	for i := range k.Boards {
		o := &k.Boards[i]
		heard := "live"
		if !o.Live {
			heard = "off, last heard " + span(time.Duration(o.HeardNs)) + " ago"
		}
		row(called(o), cmp.Or(o.SignsWith, "unknown"), cmp.Or(o.AlsoAccepts, "-"), heard)
	}
}
