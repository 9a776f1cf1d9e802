"""Beam jobs, one module each, and the folders with what the jobs share."""

if __name__ != "paraloom.beam_jobs":  # a second import would make a copy of every class
    raise ImportError(f"{__name__} is now called paraloom.beam_jobs")

VERSIONS = dict.fromkeys(("score", "bucket", "select", "idf"), 1)
VERSIONS |= dict.fromkeys(("ingest", "back_translate", "generate", "probes"), 2)
"""Versions of the jobs. Increase a job's version when the same input gives different rows."""
