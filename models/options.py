"""Base class of the sections of the configuration.

To add a configuration key, declare a field in a subclass of `Options`:

- The field's type contains the bounds of its values, as in `Count` or `Rate`.
- The field's docstring is its description in the documentation and in editors.
- The type `Annotated[str, InputPath()]` marks the path of an input file or folder. A marked path
  must exist. A path in an object store is copied before a stage reads it.
- Override `_check` to compare fields with each other.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails

Count = Annotated[int, Field(ge=1, le=10**12)]
Size = Annotated[int, Field(ge=1, le=65_536)]
"""A number that is usually small, such as the length of a vector, or the size of a beam."""
PositiveNumber = Annotated[float, Field(gt=0)]
NonNegativeNumber = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Nearness = Annotated[float, Field(ge=0.5, le=1)]


@dataclass(frozen=True, slots=True)
class InputPath:
    """Mark of a configuration key whose value is an input path or a list of input paths."""

    copied: bool = True  # whether the path is copied from an object store before a stage reads it
    checked: bool = True  # whether the path must exist when a run starts
    hub: bool = False  # whether a name on the Hugging Face Hub is allowed, too
    package: bool = False  # whether the name of an installed package is allowed, too
    keyword: str | None = None  # an allowed value that is not a path

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "format": "path"}


InputFile = Annotated[str, InputPath()]
Change = Callable[[str, str, InputPath], str]


class Options(BaseModel):
    """A section of the configuration. Options are immutable."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    def __init__(self, **values: Any) -> None:
        """Check the values. Raise a ValueError with one line that names the wrong key."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ValueError(_first_problem(type(self), values, error)) from None

    def model_post_init(self, context: Any, /) -> None:
        """Call `_check`."""
        self._check()

    def _check(self) -> None:
        """If values contradict each other, raise a ValueError that names a key."""

    @classmethod
    def of(cls, values: Any) -> Self:
        """Build options from a mapping that was read from YAML or JSON."""
        if not isinstance(values, Mapping):
            raise ValueError(f"configuration: must consist of keys and values, not {values!r}")
        return cls(**values)

    def replace(self, **changes: Any) -> Self:
        """Return a checked copy with changed values."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        copy = type(self)(**{**given, **changes})
        object.__setattr__(copy, "__pydantic_private__", self.__pydantic_private__)
        return copy

    def keys_in_use(self) -> Iterable[str]:
        """Return the keys that have an effect. Override this if sections exclude each other."""
        return type(self).model_fields

    def files(self, select: Callable[[InputPath], bool] = lambda _: True) -> dict[str, str]:
        """Return a dictionary from keys such as `select.exclude[0]` to their input paths.

        A path is left out if `select` returns False for its mark.
        """
        found: dict[str, str] = {}

        def visit(key: str, path: str, mark: InputPath) -> str:
            if select(mark):
                found[key] = path
            return path

        self.map_files(visit)
        return found

    def map_files(self, change: Change) -> Self:
        """Return a copy in which `change(key, path, mark)` replaces every input path."""
        return cast(Self, _map_files(self, "", None, change))


def _map_files(value: Any, key: str, mark: InputPath | None, change: Change) -> Any:
    if mark and value == mark.keyword:
        return value
    if isinstance(value, Options):
        fields, changed = type(value).model_fields, {}
        for name in value.keys_in_use():
            old, own = getattr(value, name), _mark(fields[name].rebuild_annotation())
            new = _map_files(old, f"{key}.{name}".lstrip("."), own, change)
            if new != old:
                changed[name] = new
        return value.replace(**changed) if changed else value
    if mark and isinstance(value, str):
        return change(key, value, mark)
    if isinstance(value, Mapping):
        return {n: _map_files(item, f"{key}.{n}", mark, change) for n, item in value.items()}
    if isinstance(value, list):
        return [_map_files(item, f"{key}[{i}]", mark, change) for i, item in enumerate(value)]
    return value


def _mark(hint: Any) -> InputPath | None:
    if isinstance(hint, InputPath):
        return hint
    return next(filter(None, map(_mark, get_args(hint))), None)


def _first_problem(cls: type[Options], values: dict[str, Any], error: ValidationError) -> str:
    """Describe the first unknown key in one line, or the first error if all keys are known."""
    errors = error.errors(include_url=False)
    first = next((item for item in errors if item["type"] == "extra_forbidden"), errors[0])
    if not first["loc"]:  # from `_check`, whose message names the key
        return str(first["ctx"]["error"])
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, cls.model_fields, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(cls.model_fields)}"
        return f"{name}: unknown key; {hint}"
    if first["type"] == "missing":
        return f"{name}: is missing"
    if first["type"] == "value_error":  # from the `_check` of an inner section
        return f"{''.join(_path(values, first['loc']))}.{first['ctx']['error']}"
    # For a union, pydantic reports an error for each type. The type that fits best has the error
    # with the longest path.
    found = [(_path(values, item["loc"]), item) for item in errors if item["loc"][0] == name]
    path, problem = max(found, key=lambda item: len(item[0]))
    said = [_said(item) for at, item in found if at == path]
    text = any(item["type"] == "string_type" for at, item in found if at == path)
    value, quote = problem["input"], "; put it in quotes, since YAML does not read it as text"
    if problem["type"].startswith("union_tag"):  # the key that chooses a section's type
        path, value = [*path, ".", problem["ctx"]["discriminator"][1:-1]], problem["ctx"].get("tag")
        if value is None:
            return f"{''.join(path)}: is missing"
    if value is None or problem["type"] == "too_short":
        return f"{''.join(path)}: is empty; give it a value, or remove it"
    hint = quote if text and isinstance(value, bool | int | float | date | dict) else ""
    shown = str(value).lower() if isinstance(value, bool | date) else repr(value)
    return f"{''.join(path)}: {' or '.join(said)}, not {shown}{hint}"


def _said(problem: ErrorDetails) -> str:
    """Return pydantic's message, but without names of classes."""
    if problem["type"] in ("model_type", "dict_type", "model_attributes_type"):
        return "must consist of keys and values"
    if problem["type"] == "union_tag_invalid":
        return f"must be {problem['ctx']['expected_tags'].replace(', ', ' or ')}"
    text = problem["msg"].replace("Input should", "must")
    return text[0].lower() + text[1:]


def _path(value: Any, steps: tuple[int | str, ...]) -> list[str]:
    """Return the path of an error in the configuration, without pydantic's names of types."""
    path: list[str] = []
    for step in steps:
        if isinstance(value, list) and isinstance(step, int):
            path.append(f"[{step}]")
            value = value[step]
        elif isinstance(value, dict) and step in value:
            path.append(f".{step}" if path else str(step))
            value = value[step]
    return path
