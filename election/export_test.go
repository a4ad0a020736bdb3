package election

// SetPatienceRule changes what is learned, for the benchmark that compares.
func SetPatienceRule(factor float64, least int, look float64) (restore func()) {
	old := patienceRule
	patienceRule.factor, patienceRule.least, patienceRule.look = factor, least, look
	return func() { patienceRule = old }
}
