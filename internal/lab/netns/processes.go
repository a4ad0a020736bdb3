package netns

import "fmt"

// Processes returns the processes whose network is that of the host, in no
// particular order: what was started there, and whatever that has started. A
// child whose parent has died still counts.
func (h *Host) Processes() ([]int, error) {
	var found []int
	err := h.lan.whileOpen(func() error {
		id, err := identify(h.ns)
		if err != nil {
			return err
		}
		found, err = findProcesses(map[namespaceID]bool{id: true})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netns: %s: list its processes: %w", h.Name, err)
	}
	return found, nil
}
