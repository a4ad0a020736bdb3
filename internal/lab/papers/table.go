// Package papers holds the tables and examples of the literature that topdog began
// with, as printed there. It measures each figure again by running the cores in the
// simulator. No figure that is compared comes from a formula.
//
// The sources are
//
//	001  a report that compares the regular and a modified bully algorithm
//	004  Kabashi, Zeqiri and Zabeli, who restate Murshed and Allen's candidate
//	     sets and let the smallest id win
//
// The papers count messages from process to process, each by its own convention.
// Every table names the convention that it follows. Additions of topdog to an
// algorithm, and messages that a paper does not count, have columns of their own.
package papers

// Table is one table or example of a paper.
type Table struct {
	Source     string   `json:"source"` // which paper, and where in it
	Title      string   `json:"title"`
	Convention string   `json:"convention"` // what is counted
	Columns    []string `json:"columns"`
	Rows       []Row    `json:"rows"`
}

// Row is one line of a table.
type Row struct {
	Name  string `json:"name"`
	Cells []Cell `json:"cells"`
}

// Cell is one figure, in print and as measured.
type Cell struct {
	// Published is what the paper prints; empty if it prints nothing and the
	// figure is only shown.
	Published string `json:"published,omitempty"`
	// Corrected is what the paper should have printed, where it is a misprint.
	Corrected string `json:"corrected,omitempty"`
	Measured  string `json:"measured"`
}

// compared reports whether there is a published figure.
func (c Cell) compared() bool { return c.Published != "" }

// Equal reports whether the measurement is what the paper says, or means.
func (c Cell) Equal() bool {
	if c.Corrected != "" {
		return c.Measured == c.Corrected
	}
	return !c.compared() || c.Measured == c.Published
}

// Tally counts the cells of tables that were compared, and those that differ.
func Tally(tables []Table) (compared, different int) {
	for _, t := range tables {
		for _, r := range t.Rows {
			for _, c := range r.Cells {
				if c.compared() {
					compared++
				}
				if !c.Equal() {
					different++
				}
			}
		}
	}
	return compared, different
}

// All measures everything. The error says which scenario did not end as its
// paper says it must, with a new leader on which all agree.
func All() ([]Table, error) {
	var tables []Table
	for _, measure := range []func() (Table, error){
		worstCases, improvements, deactivating, recovering,
		worstOf004, bestOf004, joining,
	} {
		t, err := measure()
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}
