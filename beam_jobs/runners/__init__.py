"""Runners of Beam jobs: local worker processes, Flink and Dataflow."""
