package config

import (
	"net/netip"
	"slices"
	"strings"
)

// Witness says which hosts of the LAN are asked whether anything arrives on this board's
// port. They are asked by ARP, and only while there is a doubt.
type Witness struct {
	Gateway bool         // the default gateway, if it is on the group's interface
	Addrs   []netip.Addr // or these hosts; none of both means that nobody is asked
	written bool         // the file says so
}

// MaxWitnesses is how many hosts may be listed. One that answers is enough.
const MaxWitnesses = 4

// The words that witness takes instead of addresses.
const (
	autoWitness = "auto"
	noWitness   = "none"
)

// oneMoreWitness takes one host after the other, or one of the words, which stand alone.
func oneMoreWitness(c *Config, text string) (Witness, error) {
	const example = `write witness = "auto", witness = "none", or the address of a host that is always on, for example witness = "192.168.1.1"`
	w := c.Witness
	switch {
	case !w.written:
		w = Witness{written: true}
	case len(w.Addrs) == 0 || text == autoWitness || text == noWitness:
		return w, refuse(example, "%s and %s stand alone", Quote(autoWitness), Quote(noWitness))
	}
	switch text {
	case autoWitness:
		w.Gateway = true
		return w, nil
	case noWitness:
		return w, nil
	}
	ip, err := parseIPv4(text, example)
	switch {
	case err != nil:
		return w, err
	case ip.IsLoopback():
		return w, refuse(example, "%s is a loopback address, which proves nothing of the network", ip)
	case slices.Contains(w.Addrs, ip):
		return w, refuse("delete one of the two", "%s is listed twice", ip)
	}
	w.Addrs = append(slices.Clone(w.Addrs), ip)
	return w, nil
}

// String returns the witnesses as they are written in a file, without quotation marks.
func (w Witness) String() string {
	switch {
	case w.Gateway:
		return autoWitness
	case len(w.Addrs) == 0:
		return noWitness
	}
	texts := make([]string, len(w.Addrs))
	for i, addr := range w.Addrs {
		texts[i] = addr.String()
	}
	return strings.Join(texts, ", ")
}

func tomlWitness(w Witness) string {
	if len(w.Addrs) > 0 {
		return tomlList(w.Addrs)
	}
	return tomlText(w)
}
