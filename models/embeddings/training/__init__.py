"""Training of encoders: data, negatives, losses, training loops and checkpoints."""
