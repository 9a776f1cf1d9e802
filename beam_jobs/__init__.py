"""One module per Beam job, the shared schema and the shard files they read and write."""

if __name__ != "paraloom.beam_jobs":  # in a checkout: it would copy every class
    raise ImportError(f"{__name__} is now called paraloom.beam_jobs")

VERSIONS = dict.fromkeys(("score", "bucket", "select", "idf"), 1)
VERSIONS |= dict.fromkeys(("ingest", "back_translate", "generate", "probes"), 2)
"""Versions of the jobs: bump a job's version when it makes different rows from the same input."""
