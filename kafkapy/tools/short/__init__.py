"""The short commands for daily work: `kafkapy produce`, `consume`, `ls` and `describe`."""
