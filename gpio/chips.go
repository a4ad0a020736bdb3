package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/driver/driverreg"
	"periph.io/x/host/v3/gpioioctl"
)

// loaded is the result of looking for chips. It is a variable of the package, as in
// periph, which looks once per process.
var loaded struct {
	sync.Mutex
	done  bool
	board *board
	err   error
}

// Init looks for the GPIO chips if the Spec needs them. Call it early in main,
// before the first socket is opened and the first goroutine started: where a
// chip has two names in /dev, looking for chips closes one file descriptor
// twice, and a socket that gets that number in between would die (defect 3).
//
// Init reports no error: if it found nothing, Open looks again and says what is
// wrong. On a board whose chips come late there is therefore one moment, of about a
// microsecond, in which a new socket could be closed.
func Init(spec Spec) {
	if spec.isLine() {
		_, _ = loadBoard() // Open returns the error.
	}
}

func loadBoard() (*board, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.done {
		return loaded.board, loaded.err
	}
	// Whatever can fail for a passing reason is checked before periph looks: periph
	// looks only once, and logs what it does not like.
	if err := usable("/dev"); err != nil {
		return nil, err
	}
	if err := newEnough(kernelRelease()); err != nil {
		return nil, err
	}
	loaded.done = true
	err := keepingFD(0, func() error {
		_, err := driverreg.Init()
		return err
	})
	if len(gpioioctl.Chips) == 0 {
		if err == nil {
			err = errors.New("the log says why")
		}
		loaded.err = fmt.Errorf("%w: none of the chips in /dev/gpiochip* could be read (%w); topdog has to be restarted to try again", ErrNoGPIO, err)
		return nil, loaded.err
	}
	if err != nil {
		loaded.err = fmt.Errorf("look for GPIO chips: %w", err)
		return nil, loaded.err
	}
	loaded.board = copyOf(gpioioctl.Chips, "/dev")
	return loaded.board, nil
}

// chipFiles lists the chips' device files, sorted.
func chipFiles(dev string) []string {
	paths, err := filepath.Glob(filepath.Join(dev, "gpiochip*"))
	if err != nil {
		panic(err) // The pattern is constant but for the directory.
	}
	return paths
}

// usable returns an error unless periph would find chips and be allowed to open all of
// them. One is not enough: at boot udev sets their groups one by one, and periph looks only once.
func usable(dev string) error {
	paths := chipFiles(dev)
	if len(paths) == 0 {
		return fmt.Errorf(`%w: this machine has no %s/gpiochip*; use the board's own LED ("ACT"), or none`, ErrNoGPIO, dev)
	}
	for _, path := range paths {
		// An os.File would bring a finalizer and the poller along.
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return refused(path, err)
		}
		_ = unix.Close(fd) // Nothing was written.
	}
	return nil
}

// refused explains why a chip's device file could not be opened.
func refused(path string, err error) error {
	cause := &fs.PathError{Op: "open", Path: path, Err: err}
	switch {
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w; add the user to the group %s: `sudo usermod -aG %[2]s USER`, or SupplementaryGroups=%[2]s in the unit file",
			cause, groupOf(path))
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w; the service needs DeviceAllow=char-gpiochip rw", cause)
	}
	return cause
}

// groupOf returns the group that owns a file: "gpio" on Raspberry Pi OS, and in case of doubt.
func groupOf(path string) string {
	const usual = "gpio"
	info, err := os.Stat(path)
	if err != nil {
		return usual
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Gid == 0 { // Never tell anybody to join root.
		return usual
	}
	group, err := user.LookupGroupId(strconv.FormatUint(uint64(stat.Gid), 10))
	if err != nil {
		return usual
	}
	return group.Name
}

// newEnough refuses kernels without version 2 of the GPIO character device,
// which came with Linux 5.10. On such a kernel gpioioctl also leaves two os.Files
// for one file descriptor to the garbage collector, which closes the number twice.
func newEnough(release string) error {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return nil // Not a number: let the ioctl decide.
	}
	if major < 5 || major == 5 && minor < 10 {
		return fmt.Errorf(`%w: Linux %s is too old to drive GPIO lines, it takes 5.10; use the board's own LED ("ACT"), or none`, ErrNoGPIO, release)
	}
	return nil
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// keepingFD runs do, which may close a file descriptor that is not its own, and
// puts it back in that case. The program gets the very file that it had and
// not /dev/null, so a standard input that is a terminal stays one.
func keepingFD(fd int, do func() error) error {
	const aboveStandardError = 3
	saved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, aboveStandardError)
	if err != nil {
		// It was closed already. Then /dev/null takes its place: a line's
		// descriptor must never be 0, which gpioioctl takes for "none".
		if saved, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("hold the place of file descriptor %d: %w", fd, err)
		}
		if saved == fd {
			return do()
		}
	}
	defer unix.Close(saved)
	failure := do()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); errors.Is(err, unix.EBADF) {
		if err := unix.Dup3(saved, fd, 0); err != nil {
			return errors.Join(failure, fmt.Errorf("put file descriptor %d back: %w", fd, err))
		}
	}
	return failure
}
