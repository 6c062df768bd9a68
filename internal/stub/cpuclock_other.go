//go:build !linux

package stub

import "time"

// clockRunsWhileWaiting is true: see threadCPU.
const clockRunsWhileWaiting = true

var processStart = time.Now()

// threadCPU stands in for a thread's processor clock where there is none to ask:
// it is the time that passes. What is measured with it, while a phase burns and
// not while it waits, is more than the processor time on a busy machine.
func threadCPU() time.Duration { return time.Since(processStart) }
