"""Beam jobs, with one module per job. The folders contain code that several jobs share."""

if __name__ != "paraloom.beam_jobs":  # a second import would make a copy of every class
    raise ImportError(f"{__name__} is now called paraloom.beam_jobs")

VERSIONS = dict.fromkeys(("score", "bucket", "select", "idf"), 1)
VERSIONS |= dict.fromkeys(("ingest", "back_translate", "generate", "probes"), 2)
"""Version of each job. Increase it after a change in the code that changes the job's output."""
