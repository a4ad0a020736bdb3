package trial

import (
	_ "embed"
	"regexp"
	"strings"

	"topdog/internal/lab/pi"
	"topdog/internal/lab/scene"
)

//go:embed trial.scene
var sceneText string

// files lists all files but those that live and die with a boot, what dpkg
// knows and logs, and the user database: as Debian's packages do, topdog leaves its user. Most files of a board are
// Debian's libraries, which a static program has no part of.
const files = `find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp ` +
	`-o -path /var/lib/dpkg -o -path /var/log/dpkg.log -o -path /root -o -path /usr/lib/aarch64-linux-gnu ` +
	`-o -path /usr/share/perl \) -prune -o -print | ` +
	`grep -vE '^/etc/(passwd|group|shadow|gshadow)-?$|^/etc/\.pwd\.lock$' | LC_ALL=C sort`

// unit shows what systemd says of topdog's unit, and started is what it must be: systemd takes it for started, the daemon is
// no root, and it has not ended since the board booted.
const (
	unit = `systemctl show topdog -p Type -p NRestarts -p ActiveState -p SubState; ` +
		`stat -c %U /proc/$(systemctl show topdog -p MainPID --value)`
	started = `Type=notify\nNRestarts=0\nActiveState=active\nSubState=running\ntopdog\n`
)

// happened shows what topdog says has happened on a board, and when systemd has started it.
const happened = `(systemctl show topdog -p NRestarts -p MainPID; ` +
	`topdog status --json | grep -E '"(leader_name|term)"|^    +"reason"'; journalctl --no-pager -o cat -u topdog)`

// stoodStill shows what is logged when a leader is replaced because its emulated processor paused. If the dead man's switch of
// the leader ran, that board resigned for it. Otherwise its successor found out. A daemon whose holder stood still ends,
// which hands over as well.
const stoodStill = `(journalctl -b --no-pager -o cat -u topdog | grep -E 'this daemon did not run when its next heartbeat was due|` +
	`the holder does not answer any more \(not within|was replaced although it was alive'; true)`

// text is the scene, with what stands in for the names in braces.
func text() string {
	return strings.NewReplacer("{files}", files, "{unit}", unit, "{started}", started, "{happened}", happened, "{stood-still}", stoodStill,
		"{old}", packageName(oldVersion), "{new}", packageName(newVersion), "{new-version}", newVersion,
		"{address}", pi.Floating.String()+"/",
		"{override}", "/run/systemd/system/topdog.service.d/test.conf", "{answers}", "/etc/systemd/system/answers.service").Replace(sceneText)
}

// step is a part of the scene that is played as one, and begins anew as one.
type step struct {
	title string
	scene *scene.Scene
}

var stepLine = regexp.MustCompile(`(?m)^step (several )?"(.+)"$`)

// steps are those of the scene for so many emulated boards.
func steps(emulated int) (all []step, err error) {
	text := text()
	heads := stepLine.FindAllStringSubmatchIndex(text, -1)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if head[2] >= 0 && emulated < several {
			continue
		}
		before := strings.Count(text[:head[1]], "\n") // so that lines have their numbers
		s, err := scene.Parse("trial.scene", strings.Repeat("\n", before)+text[head[1]:end])
		if err != nil {
			return nil, err
		}
		all = append(all, step{text[head[4]:head[5]], s})
	}
	return all, nil
}
