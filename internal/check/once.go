package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// AttendOnce reads an order and writes what its checks come to: a list of reasons, as Once returns them. It
// is for a process in the sandbox of the daemon; command starts a checker, as for Start.
func AttendOnce(in io.Reader, out io.Writer, command []string) error {
	var o Order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read which checks to try (this is a part of `topdog check`, which starts it): %w", err)
	}
	reasons, err := once(o, command)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(reasons)
}

// once tries the checks of an order once each in a checker, as the daemon does. It returns for each why it fails; "" if it
// passes.
func once(o Order, command []string) ([]string, error) {
	p, err := Start(command)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	o.Leading = true // those for the leader are tried as well
	if err := p.Send(o); err != nil {
		return nil, err
	}
	reasons, missing, longest := make([]string, len(o.Checks)), map[string]int{}, time.Duration(0)
	for i := range o.Checks {
		missing[o.Checks[i].ID()] = i
		longest = max(longest, o.Checks[i].Timeout)
	}
	late := time.NewTimer(longest + onceSpare)
	defer late.Stop()
	for len(missing) > 0 {
		select {
		case r, runs := <-p.Reports():
			if !runs {
				return nil, errors.New("try the checks: the checker has ended")
			}
			if i, waits := missing[r.ID]; waits {
				reasons[i] = r.Text
				delete(missing, r.ID)
			}
		case <-late.C:
			for _, i := range missing {
				reasons[i] = fmt.Sprintf("nothing was heard of it for %v", longest+onceSpare)
			}
			return reasons, nil
		}
	}
	return reasons, nil
}

// onceSpare is how long a checker may take to begin and to report, besides the timeout of a check.
const onceSpare = 3 * time.Second
