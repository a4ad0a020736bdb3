package keepalived

import (
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

// entry is a row of the tables in docs/keepalived.md: keywords of one block that share their fate. The
// text is for people: what topdog has instead, or why it has nothing.
type entry struct {
	keywords string // separated by spaces
	fate     fate
	text     string
}

// section is a block of keepalived with its keywords.
type section struct {
	block   string // "" is what stands outside of all blocks
	entries []entry
}

// find returns the entry of a keyword.
func (s section) find(keyword string) (entry, bool) {
	for _, e := range s.entries {
		for name := range strings.FieldsSeq(e.keywords) {
			if name == keyword {
				return e, true
			}
		}
	}
	return entry{}, false
}

// Texts that several blocks share.
const (
	onlyVRRP = "it is a part of VRRP, which topdog does not speak"
	noMail   = "topdog sends no mail: let a hook in /etc/topdog/hooks.d do it"
	announce = "topdog announces the address by itself, again and again where it must (docs/address.md)"
	noLVS    = "topdog balances no load: run HAProxy or nginx beside it, with a [[check]], or let `keepalived -C` go on with this part alone"
	routes   = "topdog moves addresses only: write routes and rules into the configuration of the network, or add and delete them in a hook"
	byUnit   = "the unit decides how the daemon runs: systemctl edit topdog"
	stream   = "there is no FIFO: `topdog watch` prints every change, and /run/topdog/topdog.sock.public has them as JSON"
	toHook   = "/etc/topdog/hooks.d/keepalived calls the script, as keepalived does. It runs as the user topdog; systemctl edit topdog-hooks can set User=root"
	byCheck  = "a [[check]]. There are no weights: a board whose check fails hands over to one whose checks pass"
	noDelete = "a group ends when its daemon is stopped: let the script for STOP do it"
	noFile   = `topdog watches no file: use a [[check]] with command = ["/usr/bin/grep", "-qx", "0", FILE]`
	noBFD    = "without BFD too, topdog misses a dead leader after about one heartbeat, 0.1 s"
	noOther  = "topdog watches the interface of the group by itself, and no other one. For the way out there is a [[check]] with gateway = true"
	fromOwn  = "topdog sends from the board's address on the interface, which is also its `id`"
	noWeight = "left out: a board whose check fails hands over to one whose checks pass, whatever their priorities are"
)

// sections are all blocks that are taken apart, in the order of the documentation.
var sections = []section{outside, globalDefs, vrrpInstance, authentication, syncGroup, vrrpScript, trackProcess}

var outside = section{"", []entry{
	{"vrrp_instance", converted, "a group. Each group has a configuration and a daemon of its own"},
	{"vrrp_sync_group", converted, "one group that has the addresses of all its instances: they always move together. All must be on one interface"},
	{"vrrp_script vrrp_track_process", converted, byCheck},
	{"global_defs", converted, "see below"},
	{"include includer includem includew includeb includea", converted, "the file is read as if it stood here"},
	{"track_file vrrp_track_file", refused, noFile},
	{"virtual_server virtual_server_group SSL", refused, noLVS},
	{"static_ipaddress static_routes static_rules track_group", refused, routes},
	{"bfd_instance", refused, noBFD},
	{"interface_up_down_delays", refused, "a board without a link cannot lead, and hands over at once. Repair a link that goes up and down, or look at preempt_delay"},
	{"net_namespace net_namespace_ipvs namespace_with_ipsets", refused, "systemctl edit topdog topdog-holder can set NetworkNamespacePath=, the same in both units"},
	{"linkbeat_use_polling linkbeat_interfaces", needless, "the kernel tells topdog of a link that comes or goes"},
	{"garp_group", needless, announce},
	{"instance use_pid_dir child_wait_time", needless, "topdog has no files with process ids, and one daemon for each group"},
}}

var globalDefs = section{"global_defs", []entry{
	{"default_interface", converted, "`interface`, where the instance has none"},
	{"notification_email notification_email_from smtp_server smtp_helo_name smtp_connect_timeout smtp_alert smtp_alert_vrrp smtp_alert_checker no_email_faults no_checker_emails", refused, noMail},
	{"notify_fifo notify_fifo_script vrrp_notify_fifo vrrp_notify_fifo_script lvs_notify_fifo lvs_notify_fifo_script vrrp_notify_priority_changes fifo_write_vrrp_states_on_reload", refused, stream},
	{"startup_script startup_script_timeout shutdown_script shutdown_script_timeout", refused, "systemctl edit topdog can set ExecStartPre= and ExecStopPost="},
	{"script_user set_supplementary_groups", refused, "hooks run as the user topdog, and systemctl edit topdog-hooks can set User=root; checks run as the daemon's user, in the sandbox of its unit"},
	{"snmp_socket enable_traps enable_snmp_vrrp enable_snmp_checker enable_snmp_keepalived enable_snmp_rfc enable_snmp_rfcv2 enable_snmp_rfcv3 snmp_vs_stats_update_interval snmp_rs_stats_update_interval", refused, "topdog has no SNMP: `topdog status --json` has the state"},
	{"enable_dbus dbus_service_name dbus_no_interface_name", refused, "topdog has no D-Bus interface: `topdog status --json` has the state, and /run/topdog/topdog.sock.public every change"},
	{"lvs_flush lvs_flush_on_stop lvs_flush_onstop lvs_timeouts lvs_sync_daemon rs_init_notifies checker_log_all_failures nftables_ipvs nftables_ipvs_priority nftables_ipvs_start_fwmark", refused, noLVS},
	{"enable_script_security", needless, "it is always so: a hook that others than root may change does not run"},
	{"router_id lvs_id", needless, "a board is called by its host name, or by `name`"},
	{"vrrp_version vrrp_strict vrrp_mcast_group4 vrrp_mcast_group6 vrrp_skip_check_adv_addr vrrp_check_unicast_src vrrp_lower_prio_no_advert vrrp_higher_prio_send_advert vrrp_owner_ignore_adverts vrrp_down_timer_adverts v3_checksum_as_v2 log_unknown_vrids", needless, onlyVRRP},
	{"vrrp_garp_master_delay vrrp_garp_master_repeat vrrp_garp_master_refresh vrrp_garp_master_refresh_repeat vrrp_garp_lower_prio_delay vrrp_garp_lower_prio_repeat vrrp_garp_interval vrrp_gna_interval vrrp_min_garp vrrp_garp_extra_if vrrp_vmac_garp_intvl", needless, announce},
	{"vrrp_startup_delay vrrp_delay_after_boot", needless, "a board listens before it claims anything, and waits for its checks"},
	{"dynamic_interfaces", needless, "topdog waits for its interface, and for its address"},
	{"vrrp_iptables vrrp_ipsets nftables nftables_priority nftables_counters nftables_ifindex disable_local_igmp vmac_prefix vmac_addr_prefix", needless, "the address is on a device of its own and has the board's MAC address, so nothing must be filtered"},
	{"vrrp_priority checker_priority bfd_priority vrrp_no_swap checker_no_swap bfd_no_swap vrrp_rt_priority checker_rt_priority bfd_rt_priority vrrp_cpu_affinity checker_cpu_affinity bfd_cpu_affinity vrrp_rlimit_rttime checker_rlimit_rttime bfd_rlimit_rttime vrrp_rlimit_rtime checker_rlimit_rtime bfd_rlimit_rtime max_auto_priority min_auto_priority_delay umask process_names process_name vrrp_process_name checker_process_name lvs_process_name bfd_process_name", needless, byUnit},
	{"vrrp_netlink_cmd_rcv_bufs vrrp_netlink_cmd_rcv_bufs_force vrrp_netlink_monitor_rcv_bufs vrrp_netlink_monitor_rcv_bufs_force lvs_netlink_cmd_rcv_bufs lvs_netlink_cmd_rcv_bufs_force lvs_netlink_monitor_rcv_bufs lvs_netlink_monitor_rcv_bufs_force process_monitor_rcv_bufs process_monitor_rcv_bufs_force vrrp_rx_bufs_policy vrrp_rx_bufs_multiplier", needless, "topdog's sockets need no tuning"},
	{"include_check reload_check_config reload_time_file reload_repeat reload_file config_save_dir tmp_config_directory random_seed data_use_instance json_version state_dump_file stats_dump_file json_dump_file iproute_usr_dir iproute_etc_dir use_symlink_paths", needless, "a reload takes a configuration that is right as a whole, or nothing of it"},
}}

var vrrpInstance = section{"vrrp_instance", []entry{
	{"interface", converted, "`interface`; that of the addresses, if they are on another one"},
	{"virtual_ipaddress virtual_ipaddress_excluded", converted, "`address`: IPv4 only, 16 at most"},
	{"priority", converted, "`priority`. 255 becomes 254, the greatest. It is each board's own: write it into the file of every other board"},
	{"preempt nopreempt", converted, "`preempt`: true unless there is `nopreempt`, as with keepalived. Of two boards of one priority that of the greater `id` ranks higher, and preempts too"},
	{"virtual_router_id", converted, "`group`, as `vrrp-51`: two that differ stay apart"},
	{"unicast_peer unicast_src_ip", converted, "`peers`, with all boards in it, so that the list fits each of them. topdog speaks to them beside its multicast"},
	{"track_script track_process", converted, byCheck},
	{"notify notify_master notify_backup notify_fault notify_stop", converted, toHook},
	{"authentication", converted, "see below"},
	{"preempt_delay", converted, "`preempt_delay`. Without it topdog waits for twenty heartbeats, and keepalived not at all"},
	{"notify_deleted", refused, noDelete},
	{"notify_master_rx_lower_pri", refused, "when two leaders meet, one of them releases the address and runs its script for BACKUP; the other one announces the address again"},
	{"notify_priority_changes", refused, stream},
	{"smtp_alert", refused, noMail},
	{"track_file", refused, noFile},
	{"track_bfd", refused, noBFD},
	{"track_interface", refused, noOther},
	{"virtual_routes virtual_rules", refused, routes},
	{"dont_track_primary", refused, "a board without a link cannot lead: nobody would reach the address there"},
	{"no_accept", refused, "topdog's addresses are there to answer: filter in the firewall what must not"},
	{"no_virtual_ipaddress", refused, "a group needs an address"},
	{"vrf", refused, "topdog knows no VRF: name the interface"},
	{"native_ipv6", refused, "topdog has IPv4 addresses only"},
	{"lvs_sync_daemon_interface", refused, noLVS},
	{"state", needless, "the boards elect who leads; `priority` prefers one"},
	{"advert_int", needless, "not converted: the heartbeat is 0.1 s unless `heartbeat` says otherwise, so a dead leader is replaced after about 0.1 s and not after three times `advert_int`"},
	{"accept", needless, "topdog's addresses answer"},
	{"use_vmac use_vmac_addr vmac_xmit_base use_ipvlan", needless, "the address has the MAC address of the board that leads, and is announced when it moves; topdog has a device of its own for it"},
	{"mcast_src_ip track_src_ip", needless, fromOwn},
	{"unicast_ttl unicast_fault_no_peer check_unicast_src old_unicast_checksum mcast_dst_ip version v3_checksum_as_v2 skip_check_adv_addr strict_mode down_timer_adverts lower_prio_no_advert higher_prio_send_advert owner_ignore_adverts timer_expired_backup thread_timer_expired kernel_rx_buf_size", needless, onlyVRRP},
	{"garp_master_delay garp_master_repeat garp_master_refresh garp_master_refresh_repeat garp_lower_prio_delay garp_lower_prio_repeat garp_extra_if vmac_garp_intvl", needless, announce},
	{"promote_secondaries", needless, "floating addresses are /32 addresses on topdog's own device"},
	{"linkbeat_use_polling", needless, "the kernel tells topdog of a link that comes or goes"},
	{"debug", needless, "`log_level`"},
}}

var authentication = section{"authentication", []entry{
	{"auth_type auth_pass auth_hmac key active_key time_window anti_replay mode", needless, "every packet is authenticated, with a fresh key of 256 bits that `topdog init` makes. The old password is not used"},
}}

var syncGroup = section{"vrrp_sync_group", []entry{
	{"group", converted, "the addresses of these instances are one `address` list"},
	{"track_script track_process", converted, byCheck},
	{"notify notify_master notify_backup notify_fault notify_stop", converted, toHook},
	{"notify_deleted", refused, noDelete},
	{"notify_priority_changes", refused, stream},
	{"smtp_alert", refused, noMail},
	{"track_file", refused, noFile},
	{"track_bfd", refused, noBFD},
	{"track_interface", refused, noOther},
	{"global_tracking sync_group_tracking_weight", needless, "all addresses of a group share its checks"},
}}

var vrrpScript = section{"vrrp_script", []entry{
	{"script", converted, "`command`. What only looks for a process (killall -0, pidof, pgrep) or asks systemctl becomes `unit` or `exec`, which also know at once when it dies"},
	{"interval", converted, "`every`"},
	{"timeout", converted, "`timeout`"},
	{"rise", converted, "`rise`. Without it topdog wants 2 in a row, and keepalived 1"},
	{"fall", converted, "`fall`. Without it topdog wants 3 in a row, and keepalived 1"},
	{"weight", refused, noWeight},
	{"user", refused, "checks run as the daemon's user, in the sandbox of its unit: when it runs, `sudo topdog check` has it try them there"},
	{"init_fail", needless, "a check has not passed before its first result"},
}}

var trackProcess = section{"vrrp_track_process", []entry{
	{"process", converted, "`unit`, if systemd has a service of that name, or `exec` with the path of the program"},
	{"weight", refused, noWeight},
	{"quorum quorum_max", refused, "one process is enough: use a [[check]] with a `command` that counts"},
	{"param_match full_command", refused, "a process is known by its program, whatever its arguments are: use the `unit` of the service"},
	{"delay fork_delay terminate_delay", needless, "a board whose service comes and goes waits longer each time before it may lead again"},
}}

// lists are the keywords that are followed by a block.
var lists = strings.Fields("virtual_ipaddress virtual_ipaddress_excluded unicast_peer track_script track_process track_interface authentication group")

// lacksBlock reports whether a block is missing.
func lacksBlock(s *statement) bool { return slices.Contains(lists, s.keyword()) && s.opened.line == 0 }

// overruled reports whether a keyword with one value stands in the block again: keepalived takes the last one.
func overruled(block []*statement, s *statement) bool {
	return (slices.Contains(values, s.keyword()) || s.keyword() == "script") && s != last(block, s.keyword())
}

// others makes notes on all lines that no other function has looked at.
func (c *conversion) others(chosen selection) {
	used := map[*statement]bool{}
	for _, s := range chosen.blocks() {
		used[s] = true
	}
	for _, s := range c.file {
		switch keyword := s.keyword(); {
		case keyword == "global_defs":
			c.rest(s.block, globalDefs)
		case (keyword == "vrrp_instance" || keyword == "vrrp_sync_group") && c.file.named(keyword, s.text(1)) != s:
			c.look(s, "left out, as with keepalived: a block above has this name")
		case keyword == "vrrp_instance" && !used[s], keyword == "vrrp_sync_group" && !used[s] && !c.holdsAny(s, chosen):
			c.look(s, "%s is another group: convert it by its name, for a daemon of its own", printable(s.text(1)))
		case keyword == "vrrp_instance":
			c.rest(s.block, vrrpInstance)
			for _, a := range under(s.block, "authentication") {
				c.rest(a.block, authentication)
			}
		case keyword == "vrrp_sync_group" && !used[s]:
			c.look(s, "of %s only %s is converted, without the checks and scripts of the group", printable(s.text(1)), printable(chosen.name()))
		case keyword == "vrrp_sync_group":
			c.rest(s.block, syncGroup)
		case keyword == "vrrp_script", keyword == "vrrp_track_process": // with the checks
		default:
			c.rest([]*statement{s}, outside)
		}
	}
}

// holdsAny reports whether an instance that was chosen by its own name is in a sync group.
func (c *conversion) holdsAny(group *statement, chosen selection) bool {
	for _, s := range c.file.members(group) {
		if slices.Contains(chosen.instances, s) {
			return true
		}
	}
	return false
}

// values are the keywords with one value that is converted.
var values = strings.Fields("default_interface interface priority preempt_delay virtual_router_id unicast_src_ip interval timeout rise fall")

// rest makes notes on the keywords of a block that are not converted.
func (c *conversion) rest(block []*statement, known section) {
	for _, s := range block {
		e, ok := known.find(s.keyword())
		switch {
		case strings.HasPrefix(s.keyword(), "$"):
			c.look(s, "left out: no value of one line is defined for it")
		case !ok:
			c.look(s, "topdog's converter knows no such keyword here: see whether it is misspelled, or belongs into another block")
		case lacksBlock(s):
			c.look(s, "left out: what it lists belongs into a block, %s { … }", s.keyword())
		case overruled(block, s):
			c.look(s, "left out: it stands here once more, and keepalived takes the last one")
		case e.fate == converted && slices.Contains(values, s.keyword()) && len(s.words) > 2:
			c.look(s, "without %s: one value belongs here, the first one was taken", printable(s.options()[1:]...))
		case e.fate == converted, s.keyword() == "track_interface":
		case s.keyword() == "quorum" && s.text(1) == "1": // as with topdog
		case e.fate == refused:
			c.look(s, "%s", e.text)
		default:
			c.without(s, "%s", e.text)
		}
	}
}
