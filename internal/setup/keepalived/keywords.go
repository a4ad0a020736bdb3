package keepalived

import (
	"path"
	"slices"
	"strings"
)

// fate is what becomes of a keyword.
type fate uint8

const (
	converted fate = iota // into what the text says
	needless              // topdog does without, or does it by itself
	refused               // somebody has to decide what to do instead
)

// entry is a row of the table in docs/keepalived.md: keywords that share their fate. The text is for people: what topdog has
// instead, or why it has nothing.
type entry struct {
	keywords string // separated by spaces; an asterisk stands for any letters
	fate     fate
	text     string
}

// includes are the keywords of lines that include files.
const includes = "include includer includem includew includeb includea"

// Texts that other functions print too.
const (
	onlyVRRP = "it is a part of VRRP, which topdog does not speak"
	noOther  = "topdog watches the interface of the group by itself, and no other one. " +
		"For the way out there is a [[check]] with gateway = true"
	fromOwn  = "topdog sends from the board's address on the interface, which is also its `id`"
	noWeight = "left out: a board whose check fails hands over to one whose checks pass, whatever their priorities are"
)

// entries have all keywords that are in files for small boards, in the order of the documentation. A keyword has the same
// meaning in all blocks. If several entries match it, the first one counts.
var entries = []entry{
	{includes, converted, "the file is read as if it stood here"},
	{"vrrp_instance", converted, "a group. Each group has a configuration and a daemon of its own"},
	{"vrrp_sync_group group", converted, "one group that has the addresses of all its instances: they always move together. " +
		"All must be on one interface"},
	{"global_defs authentication", converted, "the keywords in these blocks are below"},
	{"interface default_interface", converted, "`interface`; that of the addresses, if they are on another one"},
	{"virtual_ipaddress virtual_ipaddress_excluded", converted, "`address`: IPv4 only, 16 at most"},
	{"priority", converted, "`priority`. 255 becomes 254, the greatest. " +
		"It is each board's own: write it into the file of every other board"},
	{"preempt nopreempt", converted, "`preempt`: true unless there is `nopreempt`, as with keepalived. " +
		"Of two boards of one priority that of the greater `id` ranks higher, and preempts too"},
	{"preempt_delay", converted, "`preempt_delay`. Without it topdog waits for twenty heartbeats, and keepalived not at all"},
	{"virtual_router_id", converted, "`group`, as `vrrp-51`: two that differ stay apart"},
	{"unicast_peer unicast_src_ip", converted, "`peers`, with all boards in it, so that the list fits each of them. " +
		"topdog speaks to them beside its multicast"},
	{"notify notify_master notify_backup notify_fault notify_stop", converted,
		"/etc/topdog/hooks.d/keepalived calls the script, as keepalived does. " +
			"It runs as the user topdog; systemctl edit topdog-hooks can set User=root"},
	{"vrrp_script vrrp_track_process track_script track_process", converted,
		"a [[check]]. There are no weights: a board whose check fails hands over to one whose checks pass"},
	{"script", converted, "`command`. What only looks for a process (killall -0, pidof, pgrep) or asks systemctl becomes " +
		"`unit` or `exec`, which also know at once when it dies"},
	{"process", converted, "`unit`, if systemd has a service of that name, or `exec` with the path of the program"},
	{"interval", converted, "`every`"},
	{"timeout", converted, "`timeout`"},
	{"rise", converted, "`rise`. Without it topdog wants 2 in a row, and keepalived 1"},
	{"fall", converted, "`fall`. Without it topdog wants 3 in a row, and keepalived 1"},

	{"weight", refused, noWeight},
	{"track_interface", refused, noOther},
	{"track_file vrrp_track_file", refused,
		`topdog watches no file: use a [[check]] with command = ["/usr/bin/grep", "-qx", "0", FILE]`},
	{"quorum quorum_max", refused, "one process is enough: use a [[check]] with a `command` that counts"},
	{"param_match full_command", refused,
		"a process is known by its program, whatever its arguments are: use the `unit` of the service"},
	{"user script_user", refused, "hooks run as the user topdog, and systemctl edit topdog-hooks can set User=root; " +
		"checks run as the daemon's user, in the sandbox of its unit: when it runs, `sudo topdog check` has it try them there"},
	{"smtp_* notification_email*", refused, "topdog sends no mail: let a hook in /etc/topdog/hooks.d do it"},
	{"*notify_fifo* notify_priority_changes", refused,
		"there is no FIFO: `topdog watch` prints every change, and /run/topdog/topdog.sock.public has them as JSON"},
	{"notify_*", refused, "topdog knows no such event: a hook is called when a board leads, follows, fails or stops"},
	{"startup_script* shutdown_script*", refused, "systemctl edit topdog can set ExecStartPre= and ExecStopPost="},
	{"*snmp* enable_traps *dbus*", refused, "topdog has neither SNMP nor D-Bus: `topdog status --json` has the state"},
	{"virtual_server* lvs_sync* SSL", refused, "topdog balances no load: run HAProxy or nginx beside it, with a [[check]], " +
		"or let `keepalived -C` go on with this part alone"},
	{"virtual_routes virtual_rules static_*", refused, "topdog moves addresses only: " +
		"write routes and rules into the configuration of the network, or add and delete them in a hook"},
	{"*bfd*", refused, "without BFD too, topdog misses a dead leader after about one heartbeat, 0.1 s"},
	{"dont_track_primary", refused, "a board without a link cannot lead: nobody would reach the address there"},
	{"no_accept", refused, "topdog's addresses are there to answer: filter in the firewall what must not"},

	{"state", needless, "the boards elect who leads; `priority` prefers one"},
	{"advert_int", needless, "not converted: the heartbeat is 0.1 s unless `heartbeat` says otherwise, " +
		"so a dead leader is replaced after about 0.1 s and not after three times `advert_int`"},
	{"auth_* key active_key time_window anti_replay mode", needless, "every packet is authenticated, " +
		"with a fresh key of 256 bits that `topdog init` makes. The old password is not used"},
	{"router_id", needless, "a board is called by its host name, or by `name`"},
	{"enable_script_security", needless, "it is always so: a hook that others than root may change does not run"},
	{"*garp_* vrrp_gna_interval", needless,
		"topdog announces the address by itself, again and again where it must (docs/address.md)"},
	{"accept", needless, "topdog's addresses answer"},
	{"debug", needless, "`log_level`"},
	{"*use_vmac* *vmac_* use_ipvlan", needless, "the address has the MAC address of the board that leads, " +
		"and is announced when it moves; topdog has a device of its own for it"},
	{"*iptables *ipsets *nftables*", needless, "the address is on a device of its own, so nothing must be filtered"},
	{"mcast_src_ip track_src_ip", needless, fromOwn},
	{"*version *strict* vrrp_mcast_* unicast_ttl *_check_adv_addr *check_unicast_src *checksum* *_advert* *_adverts", needless,
		onlyVRRP},
	{"vrrp_startup_delay", needless, "a board listens before it claims anything, and waits for its checks"},
	{"dynamic_interfaces linkbeat_*", needless, "the kernel tells topdog of interfaces and links that come or go"},
	{"promote_secondaries", needless, "floating addresses are /32 addresses on topdog's own device"},
	{"global_tracking sync_group_tracking_weight", needless, "all addresses of a group share its checks"},
	{"init_fail", needless, "a check has not passed before its first result"},
	{"delay fork_delay terminate_delay", needless, "a board whose service comes and goes waits longer each time before it may lead again"},
	{"*_priority *_no_swap *_cpu_affinity *_rlimit_* process_name* umask instance use_pid_dir", needless,
		"the unit decides how the daemon runs: systemctl edit topdog"},
}

// find returns the entry of a keyword.
func find(keyword string) (entry, bool) {
	for _, e := range entries {
		for pattern := range strings.FieldsSeq(e.keywords) {
			if ok, err := path.Match(pattern, keyword); ok && err == nil {
				return e, true
			}
		}
	}
	return entry{}, false
}

var (
	// lists are the keywords that are followed by a block.
	lists = strings.Fields("virtual_ipaddress virtual_ipaddress_excluded unicast_peer track_script track_process track_interface " +
		"authentication group")
	// values are the keywords with one value that is converted.
	values = strings.Fields("default_interface interface priority preempt_delay virtual_router_id unicast_src_ip " +
		"interval timeout rise fall")
)

// convertible returns the statements of a block that are converted, and the state, on which others depend. It makes a note on
// each one that is not converted.
func (c *conversion) convertible(b block) (good block) {
	for _, s := range b {
		e, known := find(s.keyword())
		value := slices.Contains(values, s.keyword())
		switch {
		case strings.HasPrefix(s.keyword(), "$"):
			c.look(s, "left out: no value of one line is defined for it")
		case !known:
			c.look(s, "left out: topdog has nothing for it, or it is misspelled (docs/keepalived.md has the keywords)")
		case slices.Contains(lists, s.keyword()) && s.opened.line == 0:
			c.look(s, "left out: what it lists belongs into a block, %s { … }", s.keyword())
		case (value || s.keyword() == "script") && s != b.last(s.keyword()):
			c.look(s, "left out: it stands here once more, and keepalived takes the last one")
		case e.fate == converted, s.keyword() == "track_interface":
			if value && len(s.words) > 2 {
				c.look(s, "without %s: one value belongs here, the first one was taken", printable(s.options(1)...))
			}
			good = append(good, s)
		case s.keyword() == "quorum" && s.text(1) == "1": // as with topdog
		default:
			c.note(s, e.fate == refused, "%s", e.text)
			if s.keyword() == "state" {
				good = append(good, s)
			}
		}
	}
	return good
}

// sift finds out which statements of the file are converted, and makes notes on all others. It takes those others out of the
// blocks of what is chosen.
func (c *conversion) sift(chosen selection) {
	for _, s := range c.file {
		switch keyword := s.keyword(); keyword {
		case "vrrp_script", "vrrp_track_process": // with the checks
		case "global_defs":
			s.block = c.convertible(s.block)
		case "vrrp_instance", "vrrp_sync_group":
			inside := slices.ContainsFunc(c.file.members(s), func(i *statement) bool { return slices.Contains(chosen.instances, i) })
			switch {
			case c.file.named(keyword, s.text(1)) != s:
				c.look(s, "left out, as with keepalived: a block above has this name")
			case slices.Contains(chosen.blocks(), s):
				s.block = c.convertible(s.block)
				for _, a := range s.block.all("authentication") {
					c.convertible(a.block)
				}
			case inside:
				c.look(s, "of %s only %s is converted, without the checks and scripts of the group",
					printable(s.text(1)), printable(chosen.name()))
			default:
				c.look(s, "%s is another group: convert it by its name, for a daemon of its own", printable(s.text(1)))
			}
		default:
			c.convertible(block{s})
		}
	}
}
