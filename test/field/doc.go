// Package field holds what users of systems like this one met elsewhere, each case as a test of the real server. A test is named
// after its case:
//
//	P1   a refusal was counted although the search then ran, and a refused one as completed (opensearch-project/OpenSearch #22541)
//	P2   a group that only monitors still refused (OpenSearch #22616)
//	P3   a multi-search refused its own items; a limit of 0 shut a group (OpenSearch #22869)
//	P4   cancelling a multi-search left its other items to be started (OpenSearch #17004)
//	P5   a rule whose group had been deleted broke the list of all rules (OpenSearch #19388)
//	P6   a plain name in a rule matched whatever began with it; a pattern of users matched only itself (OpenSearch #22460, #22456)
//	P7   settings out of range were accepted, stored, and failed later (OpenSearch #22649, #16432, #15495)
//	P8   the first waiter gave up and those behind it were not woken (golang/go #37852; the test is in package wlm)
//	P9   a client that left before the answer kept its permit for ever (sgl-project/sglang #31907, openfga/openfga #3106)
//	P10  errors were plain text or broken JSON, and clients died of them (opensearch-project/opensearch-go #522, opensearch-js #698)
//	P11  keys that a strict client needs were missing in tasks (opensearch-project/opensearch-java #2008, #356)
//	P12  HEAD was answered with bytes, which the next answer began with (elastic/elasticsearch #21075, #92032)
//	P13  a client that left was not noticed while its body was unread (golang/go #23262, #35681)
//	P15  a queue went far past its stated size, because some ways into it did not look (OpenSearch #19129, elastic/elasticsearch #28547)
//
// Beside them are the scenarios by which OpenSearch's own tests take workload groups through their life, written anew.
package field
