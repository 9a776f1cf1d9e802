"""One module per Beam job, the shared schema and the shard files they read and write."""

if __name__ != "paraloom.beam_jobs":  # a second copy of every class, in a checkout
    raise ImportError(f"{__name__} is now called paraloom.beam_jobs")

VERSIONS = dict.fromkeys(("score", "bucket", "select", "idf"), 1)
VERSIONS |= dict.fromkeys(("ingest", "back_translate", "generate", "probes"), 2)
"""Versions of the jobs: bump one when the job makes other rows from the same input."""
