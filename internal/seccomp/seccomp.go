// Package seccomp has the kernel refuse system calls that this process never makes, so that an attacker who takes it over
// by a packet cannot make them either. A refused call fails with EPERM, and the process goes on. The filter holds for good,
// for all threads, and for all processes that they start.
package seccomp

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused are the system calls that a daemon does not need once it has started its other processes. The filter is there for
// the first two, which execute a program. With the others, an attacker could have another process or the kernel do so.
var refused = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	// Writing to the memory of another process of the same user.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_WRITEV,
	// The kernel carries out the requests that are put into a ring, and no filter sees them.
	unix.SYS_IO_URING_SETUP,
	// Another kernel, or more of it.
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	// Another view of the machine.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
}

// architectures has the kernel's constant for each architecture that topdog is built for. There is no filter for others.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64,
	"arm64": unix.AUDIT_ARCH_AARCH64,
	"arm":   unix.AUDIT_ARCH_ARM, // also under a kernel of 64 bits
}

// RefuseExec has the kernel refuse, from now on, all system calls in refused: this process can execute no program.
func RefuseExec() error {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return fmt.Errorf("have the kernel refuse execve: topdog does not know the numbers of the system calls of %s", runtime.GOARCH)
	}
	raw, err := bpf.Assemble(filter(architecture, refused))
	if err != nil {
		return fmt.Errorf("have the kernel refuse execve: %w", err)
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return install(&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// install gives a filter to all threads. Threads that start later inherit it.
func install(program *unix.SockFprog) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel accepts a filter only from a thread that can no longer gain privileges by execve. TSYNC sets this for the
	// other threads as well.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("have the kernel refuse execve: %w", os.NewSyscallError("prctl(PR_SET_NO_NEW_PRIVS)", err))
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(program)))
	switch {
	case errno == unix.ENOSYS || errno == unix.EINVAL:
		return fmt.Errorf("have the kernel refuse execve: it has no seccomp filters (CONFIG_SECCOMP_FILTER): %w", errno)
	case errno != 0:
		return fmt.Errorf("have the kernel refuse execve: %w", os.NewSyscallError("seccomp", errno))
	case thread != 0:
		return fmt.Errorf("have the kernel refuse execve: thread %d has another filter", thread)
	}
	return nil
}

// The offsets of the call in struct seccomp_data (seccomp(2)), in bytes.
const (
	numberAt       = 0
	architectureAt = 4
)

// foreignNumbers is where the numbers of the x32 calls begin. The kernel gives these the same architecture as those of
// amd64. No other call has a number as high.
const foreignNumbers = 0x40000000

// filter returns a program that refuses these calls, and all calls of another architecture, where the same number means
// another call.
func filter(architecture uint32, calls []uint32) []bpf.Instruction {
	const refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: architectureAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1},
		bpf.RetConstant{Val: refuse},
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: foreignNumbers, SkipTrue: 1},
		bpf.RetConstant{Val: refuse},
	}
	for _, call := range calls {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, bpf.RetConstant{Val: refuse})
	}
	return append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}
