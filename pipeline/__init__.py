"""A run: configuration, the order of stages, resume, manifest, the command line."""
