package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// leaderDirectory is a subdirectory of the hooks. Its scripts run whenever another board begins to lead.
const leaderDirectory = "leader.d"

// script is a file that may run.
type script struct {
	path string
	// eachLeader says that it runs when the leader changes, and not when the state does.
	eachLeader bool
}

// remark says why a file doesn't run.
type remark struct {
	path string
	text string
	bad  bool // somebody should fix it
}

// scripts returns the scripts of a directory in the order of their names, those of leader.d last. The remarks are about
// files that don't run.
func scripts(dir string) (found []script, remarks []remark) {
	// Whoever may write to the directory can make leader.d a link to any other.
	if err := trusted(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []remark{untrusted(dir, err)}
	}
	found, remarks = scriptsIn(dir, false)
	ofLeaders, more := scriptsIn(filepath.Join(dir, leaderDirectory), true)
	return append(found, ofLeaders...), append(remarks, more...)
}

// scriptsIn returns the scripts of one directory. A missing directory is empty.
func scriptsIn(dir string, eachLeader bool) (found []script, remarks []remark) {
	entries, err := os.ReadDir(dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = trusted(dir)
	}
	if err != nil {
		return nil, []remark{untrusted(dir, err)}
	}
	for _, e := range entries {
		if e.Name() == leaderDirectory && !eachLeader {
			continue
		}
		path := filepath.Join(dir, e.Name())
		switch why, err := ignored(path); {
		case err != nil:
			remarks = append(remarks, remark{path, "does not run: " + err.Error(), true})
		case why != "":
			remarks = append(remarks, remark{path, why, false})
		default:
			found = append(found, script{path, eachLeader})
		}
	}
	return found, remarks
}

// untrusted says that no script of a directory runs.
func untrusted(dir string, err error) remark {
	return remark{dir, "no hook in it runs: " + err.Error(), true}
}

// ignored returns why a file is no hook, or "" if it is one. The error is about a file that is meant to run but must not.
func ignored(path string) (why string, err error) {
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, "."):
		return "is hidden, and ignored", nil
	case strings.HasSuffix(name, "~"), strings.Contains(name, ".dpkg-"), strings.HasSuffix(name, ".swp"):
		return "is left over from an editor or from dpkg, and ignored", nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "is no file, and ignored", nil
	case info.Mode()&0o111 == 0:
		return fmt.Sprintf("is not executable, and ignored (if it is a hook: sudo chmod +x %s)", path), nil
	}
	if err := trusted(target); err != nil {
		return "", err
	}
	return "", trustedWay(path)
}

// trustedWay refuses a file that a user other than root could replace, because the user may write to a directory on the
// file's path, or on the path of a symbolic link's target.
func trustedWay(path string) error {
	const most = 40 // MAXSYMLINKS
	for range most {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, start := range []string{filepath.Dir(path), dir} {
			for d := start; ; d = filepath.Dir(d) {
				if err := trustedToPass(d); err != nil {
					return err
				}
				if d == filepath.Dir(d) {
					break
				}
			}
		}
		next, err := os.Readlink(path)
		if err != nil {
			return nil // it isn't a link
		}
		if path = next; !filepath.IsAbs(next) {
			path = filepath.Join(dir, next)
		}
	}
	return fmt.Errorf("%s: too many links", path)
}

// trustedToPass refuses a directory in which users other than root may replace root's files.
func trustedToPass(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.Mode()&fs.ModeSticky != 0 {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 {
			return nil // as in /tmp
		}
	}
	return trusted(dir)
}

// trusted refuses a file or directory that users other than root may change. The error says what to type.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || owner.Uid != 0:
		return fmt.Errorf("%s must belong to root: sudo chown root: %s", path, path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written to by others than root: sudo chmod go-w %s", path, path)
	}
	return nil
}
