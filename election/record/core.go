package record

import (
	"reflect"
	"time"

	"topdog/election"
	"topdog/wire"
)

// Core is a core of which everything is recorded that can change it. It is used as a core is.
type Core struct {
	*election.Core
	to *Recording
}

type (
	instant = election.Instant
	effects = []election.Effect
)

// Of returns a core that is recorded.
func (r *Recording) Of(core *election.Core) *Core { return &Core{core, r} }

// told records a call, and returns the core for it. Of a message it records who says what, and of a flag a word.
func (c *Core) told(now instant, words ...any) *election.Core {
	c.to.at(c.Core, now)
	for _, word := range words {
		c.to.text = append(c.to.text, ' ')
		switch word := word.(type) {
		case string:
			c.to.text = append(c.to.text, word...)
		case *wire.Message:
			c.to.message(word)
		default:
			c.to.text = appendValue(c.to.text, reflect.ValueOf(word))
		}
	}
	c.to.text = append(c.to.text, '\n')
	return c.Core
}

// did records what came of a call.
func (c *Core) did(all effects) effects {
	for i := range all {
		e := &all[i]
		c.to.text = append(e.Append(append(c.to.text, '\t')), '\n')
		c.to.moved = c.to.moved || e.Kind == election.EffectChange
	}
	return all
}

// tried records what came of a call that may be refused.
func (c *Core) tried(all effects, err error) (effects, error) {
	c.did(all)
	if err != nil {
		c.to.text = append(append(append(c.to.text, "\terror: "...), err.Error()...), '\n')
	}
	return all, err
}

// Wake is recorded if something is due. Else it changes nothing but the time, which the next call changes anyway; and any
// machine on the LAN could fill the recording, since the owner wakes the core when one claims the address.
func (c *Core) Wake(now instant) effects {
	if at, ok := c.Deadline(); !ok || at > max(now, c.to.last) {
		return c.Core.Wake(now)
	}
	return c.did(c.told(now, "wake").Wake(now))
}

// The methods below are those of the core.

func (c *Core) Step(now instant, m *wire.Message) effects {
	return c.did(c.told(now, m).Step(now, m))
}

func (c *Core) StepDirect(now instant, m *wire.Message) effects {
	return c.did(c.told(now, "direct", m).StepDirect(now, m))
}

func (c *Core) StepBySecondPath(now instant, m *wire.Message) effects {
	return c.did(c.told(now, "second", m).StepBySecondPath(now, m))
}

func (c *Core) DuplicateID(now instant, m *wire.Message) effects {
	return c.did(c.told(now, m).DuplicateID(now, m)) // its sender tells this from Step
}

func (c *Core) Link(now instant, up bool) effects {
	return c.did(c.told(now, "link", word(up, "up", "down")).Link(now, up))
}

func (c *Core) LostPackets(now instant) effects { return c.did(c.told(now, "lost").LostPackets(now)) }

func (c *Core) Probed(now instant, inUse bool) effects {
	return c.did(c.told(now, "probed", word(inUse, "taken", "free")).Probed(now, inUse))
}

func (c *Core) Evidence(now instant) effects { return c.did(c.told(now, "evidence").Evidence(now)) }

func (c *Core) FramesHeard(now instant) effects {
	return c.did(c.told(now, "frames").FramesHeard(now))
}

func (c *Core) AddressAnswered(now, askedAt instant) effects {
	return c.did(c.told(now, "answered", askedAt).AddressAnswered(now, askedAt))
}

func (c *Core) AddressMissed(now, since instant) effects {
	return c.did(c.told(now, "missed", since).AddressMissed(now, since))
}

func (c *Core) AddressReturned(now instant) effects {
	return c.did(c.told(now, "returned").AddressReturned(now))
}

func (c *Core) OtherVersion(now instant, board wire.ID) effects {
	return c.did(c.told(now, "version", board).OtherVersion(now, board))
}

func (c *Core) Reprioritise(now instant, priority uint8, preempt bool) effects {
	return c.did(c.told(now, "priority", priority, word(preempt, "preempt", "stay")).Reprioritise(now, priority, preempt))
}

func (c *Core) ClockTrusted(now instant, trusted bool) effects {
	return c.did(c.told(now, "clock", word(trusted, "good", "bad")).ClockTrusted(now, trusted))
}

func (c *Core) SetGrade(now instant, grade wire.Grade) effects {
	return c.did(c.told(now, "grade", grade).SetGrade(now, grade))
}

func (c *Core) SetScore(now instant, score uint32) effects {
	return c.did(c.told(now, "score", score).SetScore(now, score))
}

func (c *Core) KeyDropped(now instant, key wire.Fingerprint) effects {
	return c.did(c.told(now, "key", key).KeyDropped(now, key))
}

func (c *Core) Stop(now instant) effects { return c.did(c.told(now, "stop").Stop(now)) }

func (c *Core) LeaseLapsed(now, end instant) effects {
	return c.did(c.told(now, "lapsed", end).LeaseLapsed(now, end))
}

func (c *Core) LeaseExpired(now instant) effects {
	return c.did(c.told(now, "expired").LeaseExpired(now))
}

func (c *Core) Resign(now instant) (effects, error) {
	return c.tried(c.told(now, "resign").Resign(now))
}

func (c *Core) Pause(now instant, length time.Duration) (effects, error) {
	return c.tried(c.told(now, "pause", length).Pause(now, length))
}

func (c *Core) Unpause(now instant) (effects, error) {
	return c.tried(c.told(now, "unpause").Unpause(now))
}

func (c *Core) HeardMulticast(now instant, sender wire.ID) {
	c.told(now, "multicast", sender).HeardMulticast(now, sender)
}

func (c *Core) DelayPreemption(delay time.Duration) {
	c.told(c.to.last, "delay", delay).DelayPreemption(delay)
}

func (c *Core) SuccessorNamed(id wire.ID) { c.told(c.to.last, "named", id).SuccessorNamed(id) }

func (c *Core) Sent(beat uint32, sequence wire.Sequence) {
	c.told(c.to.last, "sent", beat, sequence).Sent(beat, sequence)
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
