"""The papers' other systems and analyses, as `paraloom.papers`.

The product knows nothing of them, but that `paraloom papers COMMAND` leads here.
"""

if __name__ != "paraloom.papers":  # a second copy of every class, in a checkout
    raise ImportError(f"{__name__} is called paraloom.papers")
