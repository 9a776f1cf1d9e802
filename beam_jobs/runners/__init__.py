"""Runners: local worker processes, Flink, Dataflow, and what remote jobs share."""
