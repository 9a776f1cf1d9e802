"""What computes: tokens, translation, similarity, encoders. Knows nothing of Beam or of runs."""
