package console

import (
	"encoding/json"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// The tree, wide and narrow, and the verdict, which is the worst but for what is not known.
func TestWriteReport(t *testing.T) {
	right := Finding{TopicConfiguration, StateRight, "no mistakes in t.toml", ""}
	unknown := Finding{TopicDHCP, StateUnknown, "only the router knows", "look there"}
	look := Finding{TopicPowerSave, StateLook, "the radio of wlan0 sleeps, so heartbeats come late", ""}
	wrong := Finding{TopicKey, StateWrong, "there is no key file: \x1b[2J", "topdog init"}
	for _, tc := range []struct {
		name     string
		findings []Finding
		o        Options
		want     string
	}{
		{"nothing is known", []Finding{unknown}, Options{}, "this board is ready (t.toml)\nfiles\n  unknown  dhcp: only the router knows\n           → look there\n"},
		{"all is right", []Finding{right, unknown}, Options{}, "this board is ready (t.toml)\nfiles\n  right    configuration: no mistakes in t.toml\n  unknown  dhcp: only the router knows\n           → look there\n"},
		{"narrow", []Finding{look, right}, Options{Width: 40}, "this board is ready, and something\nshould be looked at (t.toml)\nfiles\n" +
			"  look     power save: the radio of\n           wlan0 sleeps, so heartbeats\n           come late\n  right    configuration: no mistakes in\n           t.toml\n"},
		{"wrong, in colour", []Finding{wrong, look}, Options{Color: true}, "\x1b[1mthis board is not ready (t.toml)\x1b[0m\n\x1b[1mfiles\x1b[0m\n" +
			"\x1b[1;31m  wrong    key: there is no key file: ?[2J\x1b[0m\n\x1b[1;31m           → topdog init\x1b[0m\n" +
			"\x1b[33m  look     power save: the radio of wlan0 sleeps, so heartbeats come late\x1b[0m\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Report{File: "t.toml"}
			for _, f := range tc.findings {
				r.Add("", SectionFiles, f)
			}
			var got strings.Builder
			assert.NoError(t, WriteReport(&got, r, tc.o))
			assert.Equal(t, tc.want, got.String(), "the text")
		})
	}
}

// Findings of a section stay together, in whatever order they come.
func TestReportSections(t *testing.T) {
	var r Report
	for _, section := range []string{SectionFiles, SectionGroup, SectionFiles} {
		r.Add("", section, Finding{State: StateRight})
	}
	if len(r.Sections) != 2 || len(r.Sections[0].Findings) != 2 || len(r.Sections[1].Findings) != 1 {
		t.Errorf("the sections: %+v", r.Sections)
	}
}

// What is the same in all groups is said once, before what is not.
func TestReportOfGroups(t *testing.T) {
	r := Report{File: "t.toml"}
	r.Add("", SectionFiles, Finding{TopicKey, StateRight, "one key", ""})
	for _, group := range []string{"dns1", "dns2"} {
		r.Add(group, SectionNetwork, Finding{TopicInterface, StateRight, "eth0", ""})
		if group == "dns2" {
			r.Add(group, SectionNetwork, Finding{TopicDHCP, StateLook, "it hands out 192.168.1.251", "make it smaller"})
		}
		r.Add(group, SectionGroup, Finding{TopicDaemon, StateRight, "runs and leads", ""})
	}
	r.Add("", SectionBoard, Finding{TopicUnit, StateRight, "is enabled", ""})
	r.Share(SectionNetwork)
	var got strings.Builder
	assert.NoError(t, WriteReport(&got, r, Options{}))
	assert.Equal(t, `this board is ready, and something should be looked at (t.toml)
files
  right    key: one key
network
  right    interface: eth0
dns1: group
  right    daemon: runs and leads
dns2: network
  look     dhcp: it hands out 192.168.1.251
           → make it smaller
dns2: group
  right    daemon: runs and leads
board
  right    unit: is enabled
`, got.String(), "the text")
	text, err := json.Marshal(r.Sections[2])
	assert.NoError(t, err)
	assert.Is(t, `{"section":"group","group":"dns1","findings":[{"topic":"daemon","state":"right","text":"runs and leads","remedy":""}]}`, string(text), "the JSON")
}
