"""Data that only the papers' systems and analyses read, as they are published."""
