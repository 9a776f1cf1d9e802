"""Language models behind OpenAI's chat interface, as makers of candidates."""
