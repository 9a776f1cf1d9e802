"""What all jobs share: shards and receipts, workers, launching, crash recovery, rejections."""
