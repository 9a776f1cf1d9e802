"""The papers' other systems and analyses, as `paraloom.papers`.

The product uses them only in `paraloom papers COMMAND`.
"""

if __name__ != "paraloom.papers":  # otherwise, a checkout would have every class twice
    raise ImportError(f"{__name__} is called paraloom.papers")
