"""The papers' analyses. Each module has an analysis and its command."""
