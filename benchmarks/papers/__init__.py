"""Further systems and analyses of the papers, for `paraloom papers COMMAND`."""

if __name__ != "paraloom.papers":  # two names would define every class twice
    raise ImportError(f"{__name__} is called paraloom.papers")
