"""Language models behind OpenAI's chat interface, as generators of candidates."""
