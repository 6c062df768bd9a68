package openapi_test

import (
	"testing"

	"github.com/wlmserver/wlmserver/test/openapi"
)

func TestLoad(t *testing.T) {
	c, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(c.Operations()))
}
