"""The papers' other systems and analyses, as `paraloom.papers`.

The product refers to them only in `paraloom papers COMMAND`.
"""

if __name__ != "paraloom.papers":  # else a checkout has every class twice
    raise ImportError(f"{__name__} is called paraloom.papers")
