package simpage

import (
	"topdog/election/literature"
	"topdog/internal/lab/compare"
	"topdog/internal/lab/scenario"
	"topdog/wire"
)

// choices is all that may be chosen, and what the page says of it.
type choices struct {
	Standard   choice      `json:"standard"`
	Algorithms []algorithm `json:"algorithms"`
	Failures   []failure   `json:"failures"`
	Boards     bounds      `json:"boards"`
	Loss       bounds      `json:"loss_percent"`
	Seed       bounds      `json:"seed"`
	Examples   []example   `json:"examples"`
	Compare    comparable  `json:"compare"`
}

// algorithm is what the page says of an algorithm.
type algorithm struct {
	Name         string   `json:"name"`
	LeadsText    string   `json:"leads_text"`
	IdeaText     string   `json:"idea_text"`
	StepsText    []string `json:"steps_text"`
	CostText     string   `json:"cost_text"`
	WeaknessText string   `json:"weakness_text"`
	PaperText    string   `json:"paper_text"`
}

type bounds struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

// comparable says what can be compared.
type comparable struct {
	Algorithms []string `json:"algorithms"`
	Boards     []int    `json:"boards"`    // computed at once
	OnDemand   []int    `json:"on_demand"` // and these take seconds
}

// atOnce is up to how many boards a comparison takes a fraction of a second for each algorithm.
const atOnce = 20

func allChoices() choices {
	c := choices{
		Standard: standard, Failures: failures, Examples: examples(),
		Boards: bounds{minBoards, maxBoards}, Loss: bounds{0, maxLoss}, Seed: bounds{0, maxSeed},
	}
	for _, name := range scenario.Algorithms() {
		c.Algorithms = append(c.Algorithms, describe(name))
	}
	c.Compare.Algorithms = literature.Algorithms()
	for _, n := range compare.DefaultBoards {
		if n <= atOnce {
			c.Compare.Boards = append(c.Compare.Boards, n)
		} else {
			c.Compare.OnDemand = append(c.Compare.OnDemand, n)
		}
	}
	return c
}

func describe(name string) algorithm {
	number, _ := literature.AlgorithmNamed(name)
	a := abouts[wire.Algorithm(number)]
	return algorithm{
		Name: name, LeadsText: a.leads, IdeaText: a.idea, StepsText: a.steps,
		CostText: a.cost, WeaknessText: a.weakness, PaperText: a.paper,
	}
}
