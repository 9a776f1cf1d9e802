import paraloom.papers.systems  # noqa: F401  # makes them known
