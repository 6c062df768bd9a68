// Package groups says what a workload group is, and keeps the live set of them.
//
// A [Group] is a plain value that nobody changes once it is published. A change is a
// [Patch], in which every part is absent, null or a value:
//
//	part              absent   null          {}       value
//	resiliency_mode   keep     keep          -        replace
//	resource_limits   keep     keep          keep     overlay by resource; none is ever removed
//	settings          keep     clear         clear    overlay by key; a key's null removes it
//	throttling        keep     clear         clear    overlay by key; a key's null removes it
//	queue             keep     clear         clear    overlay by key; a key's null removes it
//
// Name and id never change. Rules about one field are checked when a body is read
// ([ParsePatch]); rules about several, such as "no queue without a limit", on the
// outcome of the merge ([Group.Validate]); rules about all groups, which are the
// count, unique names and the sum of limits, by the [Registry] as it commits.
//
// The Registry commits one change at a time: decide, write to the [records.Repository],
// publish a new [Snapshot], tell the listeners, answer. When another process has changed
// the repository meanwhile it decides anew on what that holds. Readers take the current
// snapshot by one atomic load and keep a consistent view for as long as they like.
// A change that is refused, or whose write fails, leaves everything as it was.
//
// # Where this differs from OpenSearch
//
//   - A missing name, resiliency_mode or resource_limits is the client's fault
//     (*InvalidError), not a null pointer. So is a value of the wrong JSON kind, an
//     unknown key whose value is an array, and anything after the body's object.
//   - Limits are summed exactly and the sum is rounded once. Shares that add up to 1
//     as decimals always fit, whatever the order of the groups: 0.1 + 0.2 + 0.7 does.
//   - The block throttling takes "by" as another name of "attribute".
//   - A null for a single settings key on create is dropped, not stored.
package groups
