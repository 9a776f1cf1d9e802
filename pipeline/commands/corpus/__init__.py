"""Commands that build a corpus or train an encoder on it."""
