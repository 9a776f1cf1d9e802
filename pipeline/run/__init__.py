"""Execution of stages: keys, records and derived runs. The entry point is `make.run_stages`."""
