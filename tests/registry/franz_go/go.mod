module kafkapy/registry

go 1.22

require github.com/twmb/franz-go/pkg/sr v1.3.0
