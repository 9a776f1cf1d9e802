"""Files: the pair schema, shards with receipts, storage, and bitext formats."""
