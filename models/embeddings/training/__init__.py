"""Training: data, negatives, losses, loops, checkpoints."""
