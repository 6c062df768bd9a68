package clusterpb_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
)

// frozen has every field that a released node knows. It is written anew, by this test with -freeze, after fields were added.
const frozen = "testdata/frozen.binpb"

var freeze = flag.Bool("freeze", false, "add to "+frozen+" what is new, if nothing that is there has changed")

// Nodes of different versions talk while a cluster is upgraded: messages only gain fields.
func TestMessagesOnlyGainFields(t *testing.T) {
	now := protodesc.ToFileDescriptorProto(clusterpb.File_internal_cluster_peer_clusterpb_cluster_proto)
	b, err := os.ReadFile(frozen)
	if err != nil && !*freeze {
		t.Fatal(err)
	}
	var before descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(b, &before); err != nil {
		t.Fatal(err)
	}
	for _, broken := range compare(&before, now) {
		t.Error(broken)
	}
	if t.Failed() {
		return
	}
	if *freeze {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(now)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(frozen, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, missing := range compare(now, &before) {
		t.Errorf("new, and not frozen yet: run go test ./internal/cluster/peer/clusterpb -freeze: %s", missing)
	}
}

// compare lists what of before is not in now as it was.
func compare(before, now *descriptorpb.FileDescriptorProto) (broken []string) {
	there := flatten(now)
	for name, was := range flatten(before) {
		if is, ok := there[name]; !ok {
			broken = append(broken, fmt.Sprintf("%s is missing; it was %s", name, was))
		} else if is != was {
			broken = append(broken, fmt.Sprintf("%s is %s; it was %s", name, is, was))
		}
	}
	return broken
}

// flatten describes each thing of a file that others may depend on, by its place.
func flatten(f *descriptorpb.FileDescriptorProto) map[string]string {
	all := make(map[string]string)
	if features := f.GetOptions().GetFeatures(); f.Package != nil {
		all["package"] = fmt.Sprintf("%s (%s, %s, UTF-8 %s)", f.GetPackage(), f.GetEdition(), features.GetFieldPresence(), features.GetUtf8Validation())
	}
	for _, m := range f.GetMessageType() {
		for _, d := range m.GetField() {
			place := fmt.Sprintf("field %d of message %s", d.GetNumber(), m.GetName())
			all[place] = fmt.Sprintf("%s %s %s%s", d.GetLabel(), d.GetName(), d.GetType(), d.GetTypeName())
			if d.OneofIndex != nil {
				all[place] += " of " + m.GetOneofDecl()[d.GetOneofIndex()].GetName()
			}
		}
		all["message "+m.GetName()] = "a message"
	}
	for _, e := range f.GetEnumType() {
		for _, v := range e.GetValue() {
			all[fmt.Sprintf("value %d of enum %s", v.GetNumber(), e.GetName())] = v.GetName()
		}
	}
	for _, s := range f.GetService() {
		for _, m := range s.GetMethod() {
			all[fmt.Sprintf("method %s of service %s", m.GetName(), s.GetName())] = fmt.Sprintf("%s (stream %t) to %s (stream %t)",
				m.GetInputType(), m.GetClientStreaming(), m.GetOutputType(), m.GetServerStreaming())
		}
	}
	return all
}

// What the comparison is to notice, it notices.
func TestCompareNotices(t *testing.T) {
	for name, change := range map[string]func(*descriptorpb.FileDescriptorProto){
		"a field removed": func(f *descriptorpb.FileDescriptorProto) { m := message(f, "Bucket"); m.Field = m.Field[1:] },
		"a field renamed": func(f *descriptorpb.FileDescriptorProto) { message(f, "Bucket").Field[0].Name = new("team") },
		"a field renumbered": func(f *descriptorpb.FileDescriptorProto) {
			message(f, "Bucket").Field[0].Number = proto.Int32(100)
		},
		"another type": func(f *descriptorpb.FileDescriptorProto) {
			message(f, "Bucket").Field[0].Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		},
		"a list made of one": func(f *descriptorpb.FileDescriptorProto) {
			message(f, "Bucket").Field[0].Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		},
		"out of its oneof":  func(f *descriptorpb.FileDescriptorProto) { message(f, "Key").Field[0].OneofIndex = nil },
		"a message removed": func(f *descriptorpb.FileDescriptorProto) { f.MessageType = f.MessageType[1:] },
		"a value renumbered": func(f *descriptorpb.FileDescriptorProto) {
			f.EnumType[0].Value[1].Number = proto.Int32(100)
		},
		"a method removed":    func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method = f.Service[0].Method[1:] },
		"a method of one way": func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[0].ServerStreaming = new(false) },
		"strictly UTF-8":      func(f *descriptorpb.FileDescriptorProto) { f.Options.Features.Utf8Validation = nil },
	} {
		t.Run(name, func(t *testing.T) {
			before := protodesc.ToFileDescriptorProto(clusterpb.File_internal_cluster_peer_clusterpb_cluster_proto)
			now := proto.CloneOf(before)
			change(now)
			if len(compare(before, now)) == 0 {
				t.Error("not noticed")
			}
		})
	}
}

func message(f *descriptorpb.FileDescriptorProto, name protoreflect.Name) *descriptorpb.DescriptorProto {
	for _, m := range f.MessageType {
		if m.GetName() == string(name) {
			return m
		}
	}
	panic("no message " + string(name))
}
