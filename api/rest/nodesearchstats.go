package rest

import (
	"strings"

	"github.com/wlmserver/wlmserver/search"
)

// backpressureDTO is the statistics of search backpressure. There is no such thing here yet: its mode is what the setting
// says, and all that it would count is 0.
type backpressureDTO struct {
	SearchTask      backpressureOfDTO `json:"search_task"`
	SearchShardTask backpressureOfDTO `json:"search_shard_task"`
	Mode            string            `json:"mode"`
}

// backpressureOfDTO is about one kind of tasks.
type backpressureOfDTO struct {
	Trackers struct {
		Heap struct {
			Cancellations int64  `json:"cancellation_count"`
			Max           string `json:"current_max,omitempty"`
			MaxBytes      int64  `json:"current_max_bytes"`
			Average       string `json:"current_avg,omitempty"`
			AverageBytes  int64  `json:"current_avg_bytes"`
			Rolling       string `json:"rolling_avg,omitempty"`
			RollingBytes  int64  `json:"rolling_avg_bytes"`
		} `json:"heap_usage_tracker"`
		CPU     timeTrackerDTO `json:"cpu_usage_tracker"`
		Elapsed timeTrackerDTO `json:"elapsed_time_tracker"`
	} `json:"resource_tracker_stats"`
	Completions   int64 `json:"completion_count"`
	Cancellations struct {
		Count        int64 `json:"cancellation_count"`
		LimitReached int64 `json:"cancellation_limit_reached_count"`
	} `json:"cancellation_stats"`
}

type timeTrackerDTO struct {
	Cancellations int64  `json:"cancellation_count"`
	Max           string `json:"current_max,omitempty"`
	MaxMillis     int64  `json:"current_max_millis"`
	Average       string `json:"current_avg,omitempty"`
	AverageMillis int64  `json:"current_avg_millis"`
}

func (s *Server) backpressure(human bool) *backpressureDTO {
	d := &backpressureDTO{Mode: s.cfg.Settings.Snapshot().String("search_backpressure.mode")}
	if human {
		const noBytes, noTime = "0b", "0s"
		for _, of := range [...]*backpressureOfDTO{&d.SearchTask, &d.SearchShardTask} {
			t := &of.Trackers
			t.Heap.Max, t.Heap.Average, t.Heap.Rolling = noBytes, noBytes, noBytes
			t.CPU.Max, t.CPU.Average, t.Elapsed.Max, t.Elapsed.Average = noTime, noTime, noTime, noTime
		}
	}
	return d
}

// lateTasksDTO counts tasks that run on long after they were cancelled.
type lateTasksDTO struct {
	SearchTask      lateCountDTO `json:"search_task"`
	SearchShardTask lateCountDTO `json:"search_shard_task"`
}

type lateCountDTO struct {
	Current int64 `json:"current_count_post_cancel"`
	Total   int64 `json:"total_count_post_cancel"` // with those that have ended
}

// lateTasks counts the searches, and the work on shards, that ran on for longer than task_cancellation.duration_millis after they
// had been cancelled.
func (s *Server) lateTasks() *lateTasksDTO {
	d := &lateTasksDTO{}
	if !s.cfg.Settings.Snapshot().Bool("task_cancellation.enabled") {
		return d
	}
	for action, late := range s.cfg.Tasks.Late() {
		of := &d.SearchTask
		switch {
		case strings.HasPrefix(action, search.SearchAction+"["):
			of = &d.SearchShardTask
		case !strings.HasPrefix(action, search.SearchAction):
			continue
		}
		of.Current += int64(late.Current)
		of.Total += int64(late.Total)
	}
	return d
}
