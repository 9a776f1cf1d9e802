"""How stages run: keys, records, derived runs. Start reading at `make.run_stages`."""
