"""Running the jobs on Flink: a cluster on this machine, its workers, and what a job is given.

`install` fetches Flink and Beam's job server, `cluster` starts and ends their processes, `worker`
is the program of a Python worker, `submit` sees that all of it is there before a job is handed in.
"""
