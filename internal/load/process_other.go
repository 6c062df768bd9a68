//go:build !unix

package load

import "time"

func openFiles() uint64 { return fileLimit }

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
