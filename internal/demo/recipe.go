package demo

import "fmt"

// recipe is the demonstration as commands for a shell, against a server at base: index and group, the searches with a
// count of their status codes (each that has not ended after four seconds is cancelled), meanwhile who runs and who
// waits, then the group's counters. It may be typed again. There are no comments in it: an interactive zsh takes none.
func recipe(p plan, base string) string {
	return fmt.Sprintf(`curl -s -X PUT '%[1]s/%[2]s' -H 'Content-Type: application/json' -d '%[3]s'; echo
curl -s -X PUT '%[1]s/_wlm/workload_group' -H 'Content-Type: application/json' \
  -d '%[4]s'; echo
GROUP=$(curl -s '%[1]s/_wlm/workload_group/%[7]s' | sed 's/.*"_id":"\([^"]*\)".*/\1/')
(for i in $(seq %[5]d); do
  curl -s -o /dev/null -w '%%{http_code}\n' -X POST '%[1]s/%[2]s/_search?cancel_after_time_interval=4s' \
    -H "workloadGroupId: $GROUP" -H 'Content-Type: application/json' \
    -d '%[6]s' &
done; wait) | sort | uniq -c &
sleep 0.6
curl -s '%[1]s/_tasks?detailed=true&actions=indices:data/read/search&pretty' | grep -A 6 '"status"'
wait
curl -s "%[1]s/_wlm/stats/$GROUP?pretty"
`, base, p.index, p.indexBody(), p.groupBody(), p.searches, p.searchBody(), p.group)
}
