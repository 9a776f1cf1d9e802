"""The error of encoders that sentence-transformers cannot hold."""


class InexpressibleError(ValueError):
    """sentence-transformers has no modules for this encoder; the message says for what."""
