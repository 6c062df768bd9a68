package stub

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockRunsWhileWaiting is false: a thread's processor clock stands still while
// the thread waits.
const clockRunsWhileWaiting = false

// threadCPU is how much processor time the calling thread has used. It means
// something only as a difference, on a goroutine that is locked to its thread.
func threadCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0 // the kernel has no such clock: nothing is ever used
	}
	return time.Duration(ts.Nano())
}
