package pi

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writeWhole writes a file such that a reader sees all of it or the old one.
func writeWhole(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// copySparse copies a file without filling its holes: most of a card is empty.
func copySparse(from, to string) error {
	return run("cp", "--sparse=always", "--reflink=auto", "--", from, to)
}

// writeInto puts a file into /root of a card, as a card reader would.
func writeInto(card, file string) error {
	command := fmt.Sprintf("write %q %q", file, "/root/"+filepath.Base(file))
	out, err := output("debugfs", "-w", "-R", command, card)
	// Its exit status does not tell.
	if err == nil && !strings.Contains(out, "Allocated inode") {
		err = fmt.Errorf("debugfs: %s: %s", command, out)
	}
	return err
}

// addSeed writes 64 random bytes to where the kernel looks for them in a device
// tree.
func addSeed(dtb string) error {
	seed := make([]byte, 64)
	if _, err := rand.Read(seed); err != nil {
		return err
	}
	args := []string{"-p", "-t", "bx", dtb, "/chosen", "rng-seed"}
	for _, b := range seed {
		args = append(args, fmt.Sprintf("%x", b))
	}
	return run("fdtput", args...)
}

// run runs a program of this machine to its end.
func run(name string, args ...string) error {
	_, err := output(name, args...)
	return err
}

// output is like run, and returns all that the program says.
func output(name string, args ...string) (string, error) {
	path, err := FindProgram(name)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), err
}
