"""What `kafkapy doctor` looks at, one file per subject. Each check looks only, and yields findings."""
