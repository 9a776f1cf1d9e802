"""One module per Beam job, the shared schema and the shard files they read and write."""
