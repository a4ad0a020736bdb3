package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"topdog/internal/check"
)

// DaemonUser is the user whom the package makes. The daemon runs as that user, who owns the key.
const DaemonUser = "topdog"

// staffGroup may write to /usr/local on older Debian systems, and is as good as root by that.
const staffGroup = "staff"

// distrust says why a file is refused, and what to type.
type distrust struct{ message, hint string }

func (d *distrust) Error() string { return d.message }

// trusted refuses a file that a stranger could have written or could replace: what the
// configuration says is carried out, and whoever has the key has the address. The owner must be
// root, or the user who runs this, or one of the others. A group may write if it is the owner's
// own, of the same name, as many distributions make one for each user. So must it be with all
// directories on the way, as with sshd's StrictModes; of one with the sticky bit, such as /tmp,
// only what is below it counts.
//
// The file was opened already. What it was opened by is walked afterwards: if no stranger can
// change anything on the way, it is still the way.
func trusted(path string, opened fs.FileInfo, others ...uint32) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	way := walk{owners: append([]uint32{0, uint32(os.Geteuid())}, others...)}
	if err := way.allowed(path, opened); err != nil {
		return err
	}
	found, err := way.to(path)
	if err != nil {
		return err
	}
	if !os.SameFile(found, opened) {
		return errors.New("it was replaced while it was read; try again")
	}
	return nil
}

// walk follows a path from the root, link by link.
type walk struct{ owners []uint32 }

// to walks to the end of an absolute path.
func (w walk) to(path string) (info fs.FileInfo, err error) {
	const mostLinks = 40 // MAXSYMLINKS
	at := string(filepath.Separator)
	left := strings.Split(filepath.Clean(path), at)
	for links := 0; ; {
		if info, err = os.Lstat(at); err != nil {
			return nil, err
		}
		if err := w.allowed(at, info); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(at)
			if links++; err != nil || links > mostLinks {
				return nil, errors.Join(fmt.Errorf("%s leads nowhere", at), err)
			}
			if at = filepath.Dir(at); filepath.IsAbs(target) {
				at = string(filepath.Separator)
			}
			left = append(strings.Split(target, string(filepath.Separator)), left...)
		}
		for len(left) > 0 && (left[0] == "" || left[0] == ".") {
			left = left[1:]
		}
		if len(left) == 0 {
			return info, nil
		}
		at, left = filepath.Join(at, left[0]), left[1:]
	}
}

// allowed refuses what a stranger owns or may write to.
func (w walk) allowed(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil // a system without owners
	}
	allowed := false
	for _, uid := range w.owners {
		allowed = allowed || stat.Uid == uid
	}
	if !allowed {
		return &distrust{fmt.Sprintf("%s belongs to %s, who is neither root nor the user who runs topdog", path, userName(stat.Uid)),
			"if it is right all the same, and topdog does not run as that user, run: chown -h root " + ShellQuote(path)}
	}
	mode := info.Mode()
	if mode&fs.ModeSymlink != 0 || mode.IsDir() && mode&fs.ModeSticky != 0 {
		return nil // a link has no mode, and nobody else may replace what is in such a directory
	}
	switch {
	case mode.Perm()&0o002 != 0:
		return &distrust{fmt.Sprintf("everybody may write to %s (mode %04o)", path, mode.Perm()), "run: chmod go-w " + ShellQuote(path)}
	case mode.Perm()&0o020 != 0 && hasACL(path):
		return &distrust{fmt.Sprintf("an access control list lets others write to %s (getfacl shows it)", path), "run: setfacl -b " + ShellQuote(path)}
	case mode.Perm()&0o020 != 0 && !private(stat.Uid, stat.Gid):
		return &distrust{fmt.Sprintf("the group %s may write to %s (mode %04o)", groupName(stat.Gid), path, mode.Perm()), "run: chmod g-w " + ShellQuote(path)}
	}
	return nil
}

// hasACL reports whether a file has a POSIX access control list. The mode of such a file has in place of what
// the group may do what anybody may do at most whom the list names, so without that bit nobody in it may write.
func hasACL(path string) bool {
	size, err := syscall.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && size > 0
}

// private reports whether a group is as good as the owner: the owner's own, or root's.
func private(uid, gid uint32) bool {
	if gid == 0 {
		return true
	}
	name := groupName(gid)
	return name == userName(uid) || uid == 0 && name == staffGroup
}

func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "the user " + number
}

func groupName(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return g.Name
	}
	return number
}

// keyOwners are who may own the key besides root and the user who runs this: for root, the user
// whom the package has made.
func keyOwners() (owners []uint32) {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(DaemonUser)
	if err != nil {
		return nil
	}
	if uid, err := strconv.ParseUint(u.Uid, 10, 32); err == nil {
		owners = append(owners, uint32(uid))
	}
	return owners
}

// trustPrograms refuses programs that a stranger could replace. One that is not there is told of
// by who runs it.
func (c *Config) trustPrograms() error {
	var bad Errors
	var programs []string
	if len(c.ScoreCommand) > 0 {
		programs = append(programs, c.ScoreCommand[0])
	}
	for i := range c.Checks {
		if c.Checks[i].Kind == check.Command {
			programs = append(programs, c.Checks[i].Target)
		}
	}
	for _, program := range programs {
		info, err := os.Stat(program)
		if err != nil {
			continue
		}
		if problem, ok := distrusted(program, "the program is not run", trusted(program, info)); ok {
			bad = append(bad, problem)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// distrusted makes a problem of a file of the error of trusted.
func distrusted(file, what string, err error) (Problem, bool) {
	if err == nil {
		return Problem{}, false
	}
	p := Problem{File: file, Message: what + ": " + err.Error(), err: err}
	if why, ok := errors.AsType[*distrust](err); ok {
		p.Hint = why.hint
	}
	return p, true
}
