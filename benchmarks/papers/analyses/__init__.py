"""The papers' analyses: one module for each, with its command."""
