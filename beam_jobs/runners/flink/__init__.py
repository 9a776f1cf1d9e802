"""Running the jobs on Flink: a cluster on this machine, its workers, and what a job is given.

`install` fetches Flink and Beam's job server, `programs` says what is started with what, `cluster`
starts and ends the processes, `pool` and `worker` are the programs of the Python side, `submit`
sees that all of it is there before a job is handed in.
"""
