// Package golden replays what a real OpenSearch 3.9.0 was asked, and compares what it answered with what this server answers.
//
// testdata holds one list of cases a file, each in the order in which it was recorded. Every file is replayed against a fresh
// server that has what the recording found when it began (script_test.go). A case passes when status, headers, types of errors,
// keys with their order, kinds of values and all values that do not depend on the machine or the clock are the recorded ones
// (compare_test.go), or it stands in the one list of exceptions with the reason (exceptions_test.go). An exception that is none
// any more fails the test, and so does a list that grows beyond what was agreed.
//
//	make golden
//
// prints, for each file and in total, how many cases passed and how many stand in which part of the list.
package golden
