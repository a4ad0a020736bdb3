package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"topdog/election"
)

// answers is a service of the usual kind. It notes whether the board has the floating address when
// it is told to stop, where that survives the end of the board.
const answers = `[Service]
ExecStart=sleep infinity
ExecStop=sh -c 'ip -4 -o address show >/root/at-stop; sync'
[Install]
WantedBy=multi-user.target
`

// downTime bounds a shutdown: systemd gives each service 90 s.
const downTime = 2 * time.Minute

// shutDown shuts the leader down in good order. It must have handed over when its services are told to
// stop. Then it is switched on again, and leads when the others resign.
func (t *trial) shutDown(ctx context.Context) (string, error) {
	board, heir := t.other()
	if err := t.lead(ctx, board); err != nil {
		return "", err
	}
	b := t.board(board)
	if err := b.WriteFile(ctx, "/etc/systemd/system/answers.service", answers, "0644", "root:root"); err != nil {
		return "", err
	}
	if _, err := b.Run(ctx, "systemctl daemon-reload && systemctl enable --now answers 2>&1 && systemctl is-active topdog-leave"); err != nil {
		return "", err
	}
	begin := time.Now()
	if _, err := b.Run(ctx, "systemctl --no-block poweroff"); err != nil {
		return "", err
	}
	if _, err := t.awaitLeader(ctx, heir, board); err != nil {
		return "", err
	}
	gap, err := t.outage(begin, handoverTime)
	if err != nil {
		return "", err
	}
	s, err := t.member(heir).Status(ctx)
	if err != nil {
		return "", err
	}
	if len(s.Changes) == 0 || s.Changes[0].Reason != election.ReasonHandover.Identifier() {
		return "", fmt.Errorf("%s leads because of %+v, want a hand-over", s.Board.Name, s.Changes)
	}
	if err := t.awaitOff(ctx, board); err != nil {
		return "", err
	}
	if err := b.PowerOn(); err != nil {
		return "", err
	}
	if err := b.WaitReady(ctx, bootTime); err != nil {
		return "", err
	}
	noted, err := b.Run(ctx, "cat /root/at-stop; systemctl is-active answers topdog-leave; systemctl disable --now answers 2>&1; rm /etc/systemd/system/answers.service")
	if err != nil {
		return "", err
	}
	if !strings.Contains(noted, b.Address().Addr().String()+"/") || strings.Contains(noted, t.lab.Floating().String()) {
		return "", fmt.Errorf("when its service was told to stop, %s had these addresses, and should have had its own and not the floating one:\n%s", b.Name(), noted)
	}
	// It is there again if it is the heir.
	return gap, t.lead(ctx, board)
}

// awaitOff waits until a board has shut down and switched itself off.
func (t *trial) awaitOff(ctx context.Context, n int) error {
	b := t.board(n)
	for end := time.Now().Add(downTime); b.On(); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(end) {
			return errors.New(b.Name() + " has not switched itself off")
		}
	}
	return nil
}
