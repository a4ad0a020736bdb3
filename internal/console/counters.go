package console

// Counters count since the daemon started. They are for those who look for the
// cause of something; docs/status.md explains each.
type Counters struct {
	PacketsReceived      uint64 `json:"packets_received"`
	PacketsSent          uint64 `json:"packets_sent"`
	ReceiveErrors        uint64 `json:"receive_errors"`
	ReceiveOverruns      uint64 `json:"receive_overruns"` // packets that came faster than the daemon could read or judge them
	SendErrors           uint64 `json:"send_errors"`
	MessagesWithoutRoute uint64 `json:"messages_without_route"` // not sent, because the board's address is unknown
	AddressRestored      uint64 `json:"address_restored"`       // something else had deleted it
	GroupRejoined        uint64 `json:"group_rejoined"`         // the multicast group
	RivalLeadersHeard    uint64 `json:"rival_leaders_heard"`

	// DroppedByReason counts the packets that were not accepted. The keys are the
	// identifiers of wire.DropReason, and those of SocketDrops.
	DroppedByReason map[string]uint64 `json:"dropped_by_reason"`
	// ChangesByReason counts the changes of role or leader. The keys are the
	// identifiers of election.Reason.
	ChangesByReason map[string]uint64 `json:"changes_by_reason"`
}

// The keys for packets that are dropped before they are decoded.
const (
	DroppedWrongTTL  = "wrong_ttl"  // they come from beyond the link
	DroppedOverRate  = "over_rate"  // they are more than a sender may say
	DroppedLocalUser = "local_user" // a user of this board was about to send them
)

// SocketDrops are these keys.
var SocketDrops = []string{DroppedWrongTTL, DroppedOverRate, DroppedLocalUser}
