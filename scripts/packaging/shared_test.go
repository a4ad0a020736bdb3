package packaging

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
)

// shared is the directory that all machines have as /srv.
func shared() string { return filepath.Join(built, "shared") }

// forMachines fills the shared directory with packages, once. built.deb is as scripts/package has made it. Machines install the
// others dozens of times: to decompress them would take most of the processors' time.
var forMachines = sync.OnceValue(func() error {
	script := `mkdir shared
		ln "$1" shared/built.deb
		dpkg-deb --root-owner-group -Znone -b "$2" shared/old.deb
		cp -al "$2" newer
		sed -i "s/^Version: .*/Version: $3/" newer/DEBIAN/control
		dpkg-deb --root-owner-group -Znone -b newer shared/new.deb
		touch shared/ready`
	c := exec.Command("sh", "-ec", script, "sh", packagePath(built, ownArch), ownArch, newer)
	c.Dir = built
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("make packages for the machines: %w\n%s", err, out)
	}
	return nil
})
