"""OAuth tokens: JSON web tokens, the keys that sign them, and their validation by a broker (KIP-255, KIP-768)."""
