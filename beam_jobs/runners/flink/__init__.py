"""Running the jobs on Flink: a cluster on this machine, its workers, and checks before a job.

`install` downloads Flink and Beam's job server, `programs` has the command lines, `cluster` starts
and stops the processes, `pool` and `worker` are the Python programs, and `submit` checks the
cluster before a job is submitted.
"""
