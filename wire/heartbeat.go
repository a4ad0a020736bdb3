package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Heartbeat says that the leader is alive and when to expect the next one.
type Heartbeat struct {
	Interval time.Duration // until the next heartbeat; whole milliseconds, at most 65,535
	Grace    time.Duration // how late it may be before anybody takes over, at most MaxGrace; 0 is the default of the interval
	Number   uint8         // counts heartbeats modulo 256, so that a listener can tell how many it lost
}

// heartbeatSize is the length of the body.
const heartbeatSize = 4

func (h *Heartbeat) appendTo(dst []byte) ([]byte, error) {
	interval, err := milliseconds(TypeHeartbeat, "Interval", h.Interval)
	if err != nil {
		return nil, err
	}
	grace, err := graceCode(TypeHeartbeat, h.Grace)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint16(dst, interval)
	return append(dst, grace, h.Number), nil
}

func (h *Heartbeat) decode(body []byte) Drop {
	h.Interval = time.Duration(binary.BigEndian.Uint16(body)) * time.Millisecond
	h.Grace = graceOf(body[2])
	h.Number = body[3]
	if h.Interval == 0 {
		return malformed(0)
	}
	return Drop{}
}

func (h *Heartbeat) summary() string {
	return fmt.Sprintf("beat %d, next in %v", h.Number, h.Interval) + graceSummary(h.Grace)
}
