"""Code that all jobs share: shards, receipts, workers, launching, crash recovery, rejections."""
