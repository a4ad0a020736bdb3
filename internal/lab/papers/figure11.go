package papers

// Figure11 is the report's figure 11: messages by the number of processes in the
// worst case, measured for the numbers of its table.
func Figure11() (processes, regular, modified []int, err error) {
	for _, row := range worst001 {
		r, m, err := worstCase001(row.processes)
		if err != nil {
			return nil, nil, nil, err
		}
		processes = append(processes, row.processes)
		regular = append(regular, live001(&r))
		modified = append(modified, live001(&m))
	}
	return processes, regular, modified, nil
}
