package netio

import (
	"sync"
	"testing"

	"topdog/internal/lab/assert"
)

// TestLeaseWord has many change the word at the same time, across the border between its halves: none
// of the changes is lost, and nobody reads halves that do not belong together.
func TestLeaseWord(t *testing.T) {
	const workers, each, step, start = 4, 2000, 1<<20 + 1, 1<<32 - 1<<21
	word := leaseWord{new(uint64)}
	if !word.swap(0, start) || word.load() != start {
		t.Fatalf("the word is %#x", word.load())
	}
	if word.swap(0, 1) || word.load() != start {
		t.Errorf("a word that has another value was changed to %#x", word.load())
	}
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for range each {
				for {
					former := word.load()
					if (former-start)%step != 0 {
						t.Errorf("%#x was read, which the word never was", former)
						return
					}
					if word.swap(former, former+step) {
						break
					}
				}
			}
		})
	}
	work.Wait()
	assert.Is(t, uint64(start+workers*each*step), word.load(), "the word")
}
