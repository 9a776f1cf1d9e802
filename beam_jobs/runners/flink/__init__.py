"""Jobs on a Flink cluster: checks before a job (`submit`), and the workers' programs."""
