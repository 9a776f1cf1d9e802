"""What every job goes through: shards and receipts, workers, launching, crashes, rejections."""
