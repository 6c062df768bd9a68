package demo

import "fmt"

// recipe is the demonstration as commands for a shell, against a server at base.
func recipe(p plan, base string) string {
	return fmt.Sprintf(`curl -s -X PUT '%[1]s/%[2]s' -H 'Content-Type: application/json' -d '%[3]s'; echo
GROUP=$(curl -s -X PUT '%[1]s/_wlm/workload_group' -H 'Content-Type: application/json' \
  -d '%[4]s' | sed 's/.*"_id":"\([^"]*\)".*/\1/')
for i in $(seq %[5]d); do
  curl -s -o /dev/null -w '%%{http_code}\n' -X POST '%[1]s/%[2]s/_search?cancel_after_time_interval=4s' \
    -H "workloadGroupId: $GROUP" -H 'Content-Type: application/json' \
    -d '%[6]s' &
done
sleep 0.5
curl -s '%[1]s/_tasks?detailed=true&actions=indices:data/read/search&pretty' | grep -A 6 '"status"'
wait
curl -s "%[1]s/_wlm/stats/$GROUP?pretty"
`, base, p.index, p.indexBody(), p.groupBody(), p.searches, p.searchBody())
}
