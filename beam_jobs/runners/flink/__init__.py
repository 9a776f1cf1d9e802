"""Jobs on a Flink cluster: checks (`submit`), and the workers' programs."""
