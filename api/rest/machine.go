package rest

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// machine is what the operating system tells of the machine and of this process. Zero is what it does not tell: all of it
// where there is no /proc.
type machine struct {
	memoryTotal, memoryUsed int64     // bytes
	load                    [3]string // averages over 1, 5 and 15 minutes

	openFiles     int
	maxFiles      int64
	cpu           time.Duration // that the process has used
	virtualMemory int64         // bytes of address space
}

func readMachine() machine {
	var m machine
	memory := procFields("/proc/meminfo")
	if total, available := after(memory, "MemTotal:"), after(memory, "MemAvailable:"); available > 0 {
		m.memoryTotal, m.memoryUsed = total<<10, (total-available)<<10
	}
	copy(m.load[:], procFields("/proc/loadavg"))
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		m.openFiles = len(files) - 1 // the last is that of the folder itself
	}
	limits, _ := os.ReadFile("/proc/self/limits")
	if _, files, ok := strings.Cut(string(limits), "Max open files"); ok {
		m.maxFiles = number(strings.Fields(files), 0)
	}
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		const user, system = 11, 12 // behind the name of the program, which may hold spaces
		const ticks = 100           // a second, on every Linux
		rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		m.cpu = time.Duration(number(rest, user)+number(rest, system)) * time.Second / ticks
	}
	m.virtualMemory = number(procFields("/proc/self/statm"), 0) * int64(os.Getpagesize())
	return m
}

func procFields(file string) []string {
	b, _ := os.ReadFile(file)
	return strings.Fields(string(b))
}

// after is the number behind a word.
func after(words []string, word string) int64 {
	for i, w := range words {
		if w == word {
			return number(words, i+1)
		}
	}
	return 0
}

// number is the word at i as a number; 0 where it is none.
func number(words []string, i int) int64 {
	if i >= len(words) {
		return 0
	}
	n, _ := strconv.ParseInt(words[i], 10, 64)
	return n
}

// heapUsed is how many bytes objects take that live or are not collected yet.
func heapUsed() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// percent is part of whole in whole percent; 0 where there is no whole.
func percent(part, whole int64) int {
	if whole <= 0 {
		return 0
	}
	return int(100 * float64(part) / float64(whole))
}
