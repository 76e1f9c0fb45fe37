"""The transaction coordinator (KIP-98, KIP-360, KIP-890): transactional ids, their transactions, their markers."""
