package sim

// Carry has something done when a datagram that is sent now arrives, unless it is
// lost. It is for other protocols that shall be compared on the same LAN.
func (s *Sim) Carry(arrive func()) {
	if s.wire.Loss > 0 && s.rng.Float64() < s.wire.Loss {
		return
	}
	s.At(s.delay(), arrive)
}
