"""Where jobs run: launching, crash recovery, and what each runner needs."""
