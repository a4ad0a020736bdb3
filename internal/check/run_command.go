package check

import (
	"context"

	"topdog/internal/command"
)

// commandOutputMax is how much a program may print. Nobody reads it, but many print something.
const commandOutputMax = 64 << 10

// commandProber passes when a program ends with status 0.
type commandProber struct {
	polled
	words []string
}

func (p *commandProber) probe(ctx context.Context) error {
	_, err := command.Run(ctx, p.words, commandOutputMax)
	return err
}
