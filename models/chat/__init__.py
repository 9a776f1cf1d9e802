"""Language models behind OpenAI's chat interface, which generate candidates."""
