"""How a run works: stages, keys, records, derived runs; `make.run_stages` is the way in."""
