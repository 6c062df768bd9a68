// Protos generates the Go code of what the nodes of a cluster say to one another.
//
//	go run -C tools ./protos [-check]
//
// The compiler and both generators are pinned by tools/go.mod; protoc is not needed. With -check nothing is written: the exit code is 1
// when the code in the tree is not what would be.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	root   = ".." // from the module of the tools
	source = "internal/cluster/peer/clusterpb/cluster.proto"
)

// generators are the plugins, as go tool knows them.
var generators = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	check := flag.Bool("check", false, "only look whether the generated code fits the source")
	flag.Parse()
	if err := run(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "protos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	file, err := compile(ctx)
	if err != nil {
		return err
	}
	for _, g := range generators {
		files, err := generate(ctx, g, file)
		if err != nil {
			return err
		}
		for name, content := range files {
			if err := put(filepath.Join(root, name), content, check); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile reads the source, with its comments.
func compile(ctx context.Context) (*descriptorpb.FileDescriptorProto, error) {
	c := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{root}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	return protodesc.ToFileDescriptorProto(files[0]), nil
}

// generate has one plugin generate its files.
func generate(ctx context.Context, plugin string, file *descriptorpb.FileDescriptorProto) (map[string]string, error) {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{file},
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	if response.Error != nil {
		return nil, errors.New(plugin + ": " + response.GetError())
	}
	files := make(map[string]string)
	for _, f := range response.File {
		files[f.GetName()] = f.GetContent()
	}
	return files, nil
}

// put writes a generated file, or looks whether it is there.
func put(name, content string, check bool) error {
	if !check {
		return os.WriteFile(name, []byte(content), 0o644)
	}
	there, err := os.ReadFile(name)
	if err == nil && string(there) != content {
		err = fmt.Errorf("%s is not what %s says: run make proto", name, source)
	}
	return err
}
