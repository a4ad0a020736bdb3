package election

// SetPatienceRule changes what is learned, for the benchmark that compares.
func SetPatienceRule(factor, look float64) (restore func()) {
	old := patienceRule
	patienceRule.factor, patienceRule.look = factor, look
	return func() { patienceRule = old }
}
