package silence

import "time"

const testInterval = 100 * time.Millisecond
