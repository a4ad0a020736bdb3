package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"topdog/internal/check"
)

// DaemonUser is the user that the package creates. The daemon runs as that user, who owns the key.
const DaemonUser = "topdog"

// MaxFileBytes bounds the configuration, so that a wrong path (a disk image, an
// endless device) is refused instead of read into a small board's memory.
const MaxFileBytes = 64 << 10

// LoadGroups reads and checks the file at path. The error is an [Errors]; if the file
// could not be read, errors.Is finds the cause (fs.ErrNotExist, fs.ErrPermission).
func LoadGroups(path string) (Groups, error) {
	groups, _, err := LoadGroupsText(path)
	return groups, err
}

// LoadGroupsText is LoadGroups, and also returns the content of the file.
func LoadGroupsText(path string) (Groups, []byte, error) {
	data, info, err := ReadSmall(path, MaxFileBytes)
	if err != nil {
		hint := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			hint = "make one with `topdog init ADDRESS`, or name another file with --config"
		case errors.Is(err, fs.ErrPermission):
			hint = "run topdog as root, or as a user who may read the file"
		}
		return nil, nil, Errors{{File: path, Message: "cannot read the configuration: " + bare(err), Hint: hint, err: err}}
	}
	if bad := distrusted(path, "the configuration is not used", trusted(path, info)); bad != nil {
		return nil, nil, bad
	}
	groups, err := ParseGroups(path, data)
	if err == nil {
		err = groups.trustPrograms()
	}
	return groups, data, err
}

// ReadSmall reads a regular file of at most limit bytes. It opens the file without
// blocking, so that a named pipe in its place is refused, not waited for.
func ReadSmall(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, fmt.Errorf("it is not a regular file but %s", kindOfFile(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, info, err
	}
	if int64(len(data)) > limit {
		return nil, info, fmt.Errorf("it is larger than %d bytes, so it cannot be the right file", limit)
	}
	return data, info, nil
}

func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}

// distrusted turns an error of trusted into a problem of the file. consequence says what topdog therefore does.
func distrusted(file, consequence string, err error) Errors {
	if err == nil {
		return nil
	}
	p := Problem{File: file, Message: consequence + ": " + err.Error(), err: err}
	if why, ok := errors.AsType[*refusal](err); ok {
		p.Message, p.Hint = consequence+": "+why.message, why.hint
	}
	return Errors{p}
}

// trustPrograms refuses programs that a stranger could replace. A program that does not exist is
// no concern of this function: whoever runs it will say so.
func (g Groups) trustPrograms() error {
	var programs []string
	for _, c := range g {
		if len(c.ScoreCommand) > 0 {
			programs = append(programs, c.ScoreCommand[0])
		}
		for i := range c.Checks {
			if c.Checks[i].Kind == check.Command {
				programs = append(programs, c.Checks[i].Target)
			}
		}
	}
	var bad Errors
	for i, program := range programs {
		if slices.Contains(programs[:i], program) {
			continue
		}
		if info, err := os.Stat(program); err == nil {
			bad = append(bad, distrusted(program, "the program is not run", trusted(program, info))...)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// trusted refuses a file that a stranger could have written or could replace, because topdog does what
// the configuration says, and whoever has the key can take the address. The owner must be root, the user
// who runs topdog, or one of the others. A group may write to the file if it is the owner's own, of the
// same name, which many distributions create for each user. The same holds for every directory on the
// way to the file, as with sshd's StrictModes, and with one exception: in a directory with the sticky
// bit, such as /tmp, only the owner of a file can replace it.
//
// The file is opened before its path is checked. If no stranger can change any part of the path,
// the path led to this same file then.
func trusted(path string, opened fs.FileInfo, others ...uint32) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	owners := append([]uint32{0, uint32(os.Geteuid())}, others...)
	if err := allowed(path, opened, owners); err != nil {
		return err
	}
	found, err := walk(path, owners)
	if err != nil {
		return err
	}
	if !os.SameFile(found, opened) {
		return errors.New("it was replaced while it was read; try again")
	}
	return nil
}

// walk follows an absolute path from the root, link by link, and returns what is at its end.
func walk(path string, owners []uint32) (info fs.FileInfo, err error) {
	const mostLinks = 40 // MAXSYMLINKS
	at := string(filepath.Separator)
	left := strings.Split(filepath.Clean(path), at)
	for links := 0; ; {
		if info, err = os.Lstat(at); err != nil {
			return nil, err
		}
		if err := allowed(at, info, owners); err != nil {
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

// allowed refuses what belongs to anybody but the owners, or what a stranger may write to.
func allowed(path string, info fs.FileInfo, owners []uint32) error {
	stat := info.Sys().(*syscall.Stat_t)
	if !slices.Contains(owners, stat.Uid) {
		return refuse("if it is right all the same, and topdog does not run as that user, run: chown -h root "+ShellQuote(path),
			"%s belongs to %s, who is neither root nor the user who runs topdog", path, userName(stat.Uid))
	}
	mode := info.Mode()
	if mode&fs.ModeSymlink != 0 || mode.IsDir() && mode&fs.ModeSticky != 0 {
		return nil // a link has no mode, and nobody else may replace what is in such a directory
	}
	switch {
	case mode.Perm()&0o002 != 0:
		return refuse("run: chmod go-w "+ShellQuote(path), "everybody may write to %s (mode %04o)", path, mode.Perm())
	case mode.Perm()&0o020 != 0 && hasACL(path):
		return refuse("run: setfacl -b "+ShellQuote(path), "an access control list lets others write to %s (getfacl shows it)", path)
	case mode.Perm()&0o020 != 0 && !asGoodAsOwner(stat.Gid, stat.Uid):
		return refuse("run: chmod g-w "+ShellQuote(path),
			"the group %s may write to %s (mode %04o)", groupName(stat.Gid), path, mode.Perm())
	}
	return nil
}

// hasACL reports whether a file has a POSIX access control list. In the mode of such a file, the bits of the
// group are the most that anybody in the list may do. So without its write bit, nobody in the list may write.
func hasACL(path string) bool {
	size, err := syscall.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && size > 0
}

// asGoodAsOwner reports whether a group may write to a file as its owner may: the owner's own group, the group root,
// and the group staff if root is the owner. On older Debian systems, staff may write to /usr/local, which is as much as
// root may do.
func asGoodAsOwner(gid, uid uint32) bool {
	name := groupName(gid)
	return gid == 0 || name == userName(uid) || uid == 0 && name == "staff"
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

// keyOwners returns who may own the key besides root and the user who runs topdog. If that is
// root, it is the user that the package has created.
func keyOwners() (owners []uint32) {
	if os.Geteuid() != 0 {
		return nil
	}
	if uid, _, err := UserIDs(DaemonUser); err == nil {
		owners = append(owners, uint32(uid))
	}
	return owners
}

// UserIDs returns the numbers of a user and of the user's group.
func UserIDs(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}
