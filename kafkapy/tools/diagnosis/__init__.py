"""The checks of `kafkapy doctor`, one file per subject. A check changes nothing and yields findings."""
