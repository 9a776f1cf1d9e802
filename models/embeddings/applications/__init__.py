"""Uses of a trained encoder: vectors, neighbours, evaluation."""
