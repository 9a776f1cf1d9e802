"""Makes the papers' other systems known: tasks and options, heads, encoders.

`paraloom papers` imports this module before its commands; a program that opens a saved encoder of
these kinds imports it, too.
"""

from functools import partial

from paraloom.models.embeddings.encoders import ENCODERS, Entry
from paraloom.models.embeddings.encoders.recurrent import recurrent
from paraloom.models.embeddings.options import KNOWN
from paraloom.papers.encoders.gran import GRAN
from paraloom.papers.encoders.gru import gru
from paraloom.papers.options import SystemOptions

KNOWN.append(SystemOptions)
ENCODERS |= {
    "gru": Entry(gru),
    "gran": Entry(recurrent("mean", around=partial(GRAN, variant=1))),
    "gran-2": Entry(recurrent("mean", around=partial(GRAN, variant=2))),
    "gran-3": Entry(recurrent("last", around=partial(GRAN, variant=3))),
    "gran-4": Entry(recurrent("last", around=partial(GRAN, variant=4))),
    "gran-5": Entry(recurrent("mean", around=partial(GRAN, variant=5))),
    "gran-tanh": Entry(recurrent("mean", around=partial(GRAN, variant="tanh"))),
    "gran-relu": Entry(recurrent("mean", around=partial(GRAN, variant="relu"))),
    "bigran": Entry(recurrent("mean", around=partial(GRAN, variant=1), both=True)),
}
