package setup

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"topdog/internal/config"
)

// choosePage has asked whether the page shall run, if nobody has said so and a person has
// answered questions anyway.
func (b *Board) choosePage(asked bool, in io.Reader, out io.Writer) (err error) {
	if asked && b.AskPage {
		b.Page, err = b.askPage(in, out)
	}
	return err
}

// The answers to a question that is answered so.
const (
	yes = "yes"
	no  = "no"
)

func (b Board) askPage(in io.Reader, out io.Writer) (bool, error) {
	a, err := config.ParseAddress(b.Address)
	if err != nil {
		return false, fmt.Errorf("the address: %w", err)
	}
	suits := func(text string) error {
		if beginning := strings.ToLower(text); !strings.HasPrefix(yes, beginning) && !strings.HasPrefix(no, beginning) {
			return fmt.Errorf("%q is neither %s nor %s", text, yes, no)
		}
		return nil
	}
	cfg := config.Defaults()
	cfg.Addresses = []config.Address{a}
	fmt.Fprintln(out, "Each board can show the group in a browser, to everybody on this network, read only.")
	text, err := newDialog(in, out).ask("Shall they, at "+pageURL(cfg)+" ("+yes+" or "+no+")", no, suits,
		usage("whether to show the group in a browser was not answered; --page or --page=false says it"))
	return err == nil && strings.HasPrefix(yes, strings.ToLower(text)), err
}

// pageURL is where the page is once it runs: at the floating address, unless it listens elsewhere.
func pageURL(cfg *config.Config) string {
	at, listen := cfg.Addresses[0].IP, cfg.PageListen
	if listen.Addr.IsValid() && !listen.Addr.IsUnspecified() {
		at = listen.Addr
	}
	return "http://" + netip.AddrPortFrom(at, listen.Port).String() + "/"
}

// explainPage says where the page is, or how to have one.
func (b Board) explainPage(out io.Writer, cfg *config.Config) {
	if b.Page {
		fmt.Fprintf(out, "\nThen a browser shows the group at %s\n", pageURL(cfg))
		return
	}
	fmt.Fprintf(out, "\nTo show the group in a browser, at %s, each board that may have the address needs\n\n    %s\n", pageURL(cfg), startPageLine)
}
