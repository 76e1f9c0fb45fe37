// Registers, finds, changes and deletes schemas with franz-go's registry client, and encodes a value with its Serde.
// Argument: the registry's address. Each line of the output is a JSON value; an error ends the program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	order = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	wider = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string","default":""}]}`
	wrong = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`
	batch = `{"type":"record","name":"Batch","fields":[{"name":"first","type":"Order"}]}`
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(name string, value any, err error) {
	check(err)
	check(json.NewEncoder(os.Stdout).Encode([]any{name, value}))
}

func main() {
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(os.Args[1]), sr.HTTPClient(&http.Client{Timeout: time.Minute}))
	check(err)

	first, err := client.CreateSchema(ctx, "go", sr.Schema{Schema: order})
	show("created", first.Version, err)
	again, err := client.CreateSchema(ctx, "go", sr.Schema{Schema: order})
	show("created again", again.ID == first.ID, err)
	second, err := client.CreateSchema(ctx, "go", sr.Schema{Schema: wider})
	show("second", second.Version, err)
	_, err = client.CreateSchema(ctx, "go", sr.Schema{Schema: wrong})
	var refused *sr.ResponseError
	show("refused", errors.As(err, &refused) && refused.ErrorCode == 409, nil)

	text, err := client.SchemaTextByID(ctx, first.ID)
	show("text", text, err)
	found, err := client.LookupSchema(ctx, "go", sr.Schema{Schema: wider})
	show("found", found.Version, err)
	latest, err := client.SchemaByVersion(ctx, "go", -1)
	show("latest", latest.Version, err)
	versions, err := client.SubjectVersions(ctx, "go")
	show("versions", versions, err)
	usages, err := client.SchemaUsagesByID(ctx, first.ID)
	check(err)
	show("usages", []any{usages[0].Subject, usages[0].Version}, nil)
	types, err := client.SupportedTypes(ctx)
	show("types", types, err)

	reference := sr.SchemaReference{Name: "Order", Subject: "go", Version: 1}
	_, err = client.CreateSchema(ctx, "go-batch", sr.Schema{Schema: batch, References: []sr.SchemaReference{reference}})
	check(err)
	referrers, err := client.SchemaReferences(ctx, "go", 1)
	check(err)
	show("referrers", []any{len(referrers), referrers[0].Subject}, nil)

	compatibility, err := client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "go", -1, sr.Schema{Schema: wrong})
	check(err)
	show("compatible", []any{compatibility.Is, len(compatibility.Messages) > 0}, nil)
	set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive}, "go")
	show("level", set[0].Level, set[0].Err)
	show("level again", client.Compatibility(ctx, "go")[0].Level, nil)
	reset := client.ResetCompatibility(ctx, "go")
	show("level before", reset[0].Level, reset[0].Err)
	mode := client.SetMode(ctx, sr.ModeReadOnly, "go")
	show("mode", mode[0].Mode, mode[0].Err)
	_, err = client.CreateSchema(ctx, "go", sr.Schema{Schema: `"int"`})
	show("read-only", err != nil, nil)
	show("mode before", client.ResetMode(ctx, "go")[0].Mode, nil)

	var serde sr.Serde
	serde.Register(first.ID, struct{}{}, sr.EncodeFn(func(any) ([]byte, error) { return []byte{14}, nil }))
	encoded, err := serde.Encode(struct{}{})
	show("encoded", encoded, err)

	show("deleted", nil, client.DeleteSchema(ctx, "go", 2, sr.SoftDelete))
	deleted, err := client.Subjects(sr.WithParams(ctx, sr.ShowDeleted))
	show("subjects", deleted, err)
	_, err = client.DeleteSubject(ctx, "go-batch", sr.SoftDelete)
	check(err)
	_, err = client.DeleteSubject(ctx, "go-batch", sr.HardDelete)
	check(err)
	left, err := client.DeleteSubject(ctx, "go", sr.SoftDelete)
	show("deleted subject", left, err)
	gone, err := client.DeleteSubject(ctx, "go", sr.HardDelete)
	show("gone", gone, err)
}
