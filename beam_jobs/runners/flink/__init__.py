"""Jobs on a Flink cluster: checks before a job, and the programs that run workers."""
