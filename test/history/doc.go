// Package history checks what an admission did, as a [wlm.Recorder] kept it, against what it promises.
//
// The checker knows nothing of how the admission works. From the events alone it follows, bucket by bucket, who stands in line and
// who runs, and says what should not have happened:
//
//   - once: each search that came is decided once, each admitted one is closed once, and under the permit that it was given.
//   - order: parked searches are admitted in the order in which they parked, and nobody who comes later gets in before them.
//   - limit: a permit of the node tier is given out only below the limit of that moment. One of the shared tier may be under way
//     while that limit falls, so it is held to the highest one that the bucket has had.
//   - bound: nobody begins to wait when as many wait as the queue's size of that moment.
//   - idle: between two steps nobody is parked while a node permit is free, or while there is nothing to wait for; and nobody is
//     refused who could have run or waited.
//
// A step decides several searches, one event each. What a step owes, it must have paid before the bucket's next step begins.
package history
