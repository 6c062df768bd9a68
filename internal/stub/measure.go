package stub

import (
	"context"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
)

// measureTimeout bounds how long other nodes have to tell what they hold.
const measureTimeout = 5 * time.Second

// Measure completes what is known of indices by what only other nodes know: how many documents their shards hold. What no node tells
// soon is left at zero.
func (e *Engine) Measure(ctx context.Context, infos []IndexInfo) {
	missing := make(map[shard.ID]*IndexInfo)
	copies := make(map[shard.ID][]placed)
	for i := range infos {
		x := &infos[i]
		ix := e.index(x.Name)
		if ix == nil || ix.uuid != x.UUID {
			continue
		}
		d := ix.now.Load()
		for n := range x.Stores {
			if c, here := d.at(n, e.self); !here || !c.started {
				id := shard.ID{Index: x.Name, Number: n}
				missing[id], copies[id] = x, d.copies[n]
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	for turn := 0; len(missing) > 0; turn++ {
		asked := make(map[shard.Node][]shard.ID)
		for id := range missing {
			if turn < len(copies[id]) {
				n := copies[id][turn].node
				asked[n] = append(asked[n], id)
			}
		}
		if len(asked) == 0 {
			return
		}
		for _, size := range e.sizes(ctx, asked) {
			if x := missing[size.Shard]; x != nil {
				delete(missing, size.Shard)
				x.Documents += size.Documents - x.Stores[size.Shard.Number].Documents
				x.Stores[size.Shard.Number] = StoreInfo{size.Documents, size.Bytes}
			}
		}
	}
}

// sizes asks nodes what their copies hold, all at once.
func (e *Engine) sizes(ctx context.Context, asked map[shard.Node][]shard.ID) (all []shard.Size) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for node, shards := range asked {
		running.Go(func() {
			sizes, err := e.ofNode(node).Measure(ctx, shards)
			if err != nil {
				return // another copy is asked
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, sizes...)
		})
	}
	running.Wait()
	return all
}
