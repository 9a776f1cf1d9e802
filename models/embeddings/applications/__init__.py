"""What a trained encoder is used for: vectors, neighbours, evaluation, analyses."""
