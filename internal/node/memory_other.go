//go:build !linux

package node

func machineMemory() int64 { return 0 }
