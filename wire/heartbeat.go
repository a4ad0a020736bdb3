package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Heartbeat says that the leader is alive and when to expect the next one.
type Heartbeat struct {
	Interval time.Duration // until the next heartbeat; whole milliseconds, at most 65,535
	Number   uint8         // counts heartbeats modulo 256, so that a listener can tell how many it lost
}

// heartbeatSize is the length of the body.
const heartbeatSize = 3

func (h *Heartbeat) appendTo(dst []byte) ([]byte, error) {
	interval, err := milliseconds(TypeHeartbeat, "Interval", h.Interval)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint16(dst, interval)
	return append(dst, h.Number), nil
}

func (h *Heartbeat) decode(body []byte) Drop {
	h.Interval = time.Duration(binary.BigEndian.Uint16(body)) * time.Millisecond
	h.Number = body[2]
	if h.Interval == 0 {
		return malformed(0)
	}
	return Drop{}
}

func (h *Heartbeat) summary() string {
	return fmt.Sprintf("beat %d, next in %v", h.Number, h.Interval)
}
