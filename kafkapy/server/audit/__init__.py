"""The broker's part of the audit: counts the records of audited topics by client and time, and writes the counts."""
