"""Options of generators, which make candidates."""

import operator
import re
from typing import Annotated, Literal

from pydantic import Field

from paraloom.models.chat.prompts import Prompt, find_template
from paraloom.models.options import Count, NonNegativeNumber, Options, PositiveNumber

_ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
MOST = 127  # maximum number of candidates per source, because candidates are numbered in int8


class NmtGenerator(Options):
    """`kind: nmt` is the translation model of the section `nmt`."""

    kind: Literal["nmt"]
    """Kind of the generator."""
    name: Name = "nmt"
    """Name of the generator in the column `generator`."""


class Prices(Options):
    """Prices per million tokens, in any currency."""

    input: NonNegativeNumber
    """Price of prompts."""
    output: NonNegativeNumber
    """Price of answers."""


class ChatGenerator(Options):
    """`kind: chat` is a language model behind OpenAI's chat interface."""

    kind: Literal["chat"]
    """Kind of the generator."""
    name: Name
    """Name of the generator in the column `generator`."""
    base_url: str
    """Address of the server, such as `http://localhost:8000/v1`, without a user or a query."""
    model: str
    """Name of the model on the server."""
    prompt: str = "paraphrase"
    """translate, paraphrase, reword, or a Jinja2 template. See generators.md."""
    response: Literal["text", "json"] = "text"
    """text: each answer is a candidate. json: an answer is an object with the candidates in the
    list `paraphrases`."""
    n: Annotated[int, Field(ge=1, le=MOST)] = 1
    """Number of candidates per source. With `response: text`, a request asks for `n` choices."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Sampling temperature. null: the server's default."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Probability mass to sample from. null: the server's default."""
    seed: int | None = None
    """Seed that is sent to the server. null: no seed."""
    max_tokens: Count = 256
    """Maximum number of tokens per answer. Longer answers are rejected."""
    concurrency: Annotated[int, Field(ge=1, le=1_000)] = 16
    """Number of concurrent requests per worker process."""
    requests_per_minute: Count | None = None
    """Maximum number of requests per minute and worker process. null: no limit."""
    timeout: PositiveNumber = 120.0
    """Seconds to wait for an answer."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable with the API key. If the server needs a key, set the variable on every
    worker."""
    prices: Prices | None = None
    """Prices per million tokens, from which the cost is computed."""
    license: str | None = None
    """Licence of the model's outputs. The cards of the corpus and the encoder show the licence."""

    def template(self) -> Prompt:
        """Return the prompt template."""
        return find_template(self.prompt)

    def parameters(self) -> dict[str, object]:
        """Return the parameters of a request, without the prompt."""
        given: dict[str, object] = {"model": self.model, "max_tokens": self.max_tokens}
        sampling = {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed}
        given |= {name: value for name, value in sampling.items() if value is not None}
        if self.response == "json":
            return given | {"response_format": {"type": "json_object"}}
        return given | ({"n": self.n} if self.n > 1 else {})

    def _check(self) -> None:
        if not self.api_key_env.isidentifier():  # the value may be the key, so do not show it
            raise ValueError("api_key_env: must be the name of an environment variable")
        if not _ADDRESS.fullmatch(self.base_url):  # the value may contain a password
            raise ValueError(
                "base_url: must be an address such as http://localhost:8000/v1, without a user, a "
                "password or a query; a key belongs in the variable that api_key_env names"
            )
        self.template()


Generator = Annotated[NmtGenerator | ChatGenerator, Field(discriminator="kind")]
Generators = Annotated[list[Generator] | None, Field(exclude_if=operator.not_)]
