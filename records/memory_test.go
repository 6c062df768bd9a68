package records_test

import (
	"testing"

	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/store/contract"
)

func TestMemory(t *testing.T) {
	m := new(records.Memory)
	contract.Repository(t, func() records.Repository { return m })
}

func TestWritersOfMemory(t *testing.T) {
	node := contract.Repositories{Groups: new(records.Memory), Rules: new(records.Memory), Settings: new(records.Memory)}
	contract.Writers(t, node, node)
}
