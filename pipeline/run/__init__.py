"""The running of stages: keys, records, derived runs; start reading at `make.run_stages`."""
