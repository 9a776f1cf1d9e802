"""The base class of all options: typed and frozen, checked when built, with errors of one line.

An options class holds one section of the configuration. A field's docstring is its description: it
is shown in the documentation and by editors. Bounds are part of a field's type (`Count`, `Rate`),
checks across fields stand in `__post_init__`. A key that names an input file or folder has the type
`Annotated[str, InputPath()]`, which is all that is needed to check it and to copy it from an object
store.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_type_hints,
)

import pydantic.dataclasses
from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails

Count = Annotated[int, Field(ge=1)]
PositiveNumber = Annotated[float, Field(gt=0)]
NonNegativeNumber = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]


@dataclasses.dataclass(frozen=True, slots=True)
class InputPath:
    """Marks a configuration key as the path of an input file or folder, or of several.

    Attributes:
        copied: a path in an object store is copied to this machine before a stage reads it.
        checked: the path must exist when a run starts.
    """

    copied: bool = True
    checked: bool = True

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "format": "path"}


InputFile = Annotated[str, InputPath()]

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def options(cls: _Class) -> _Class:
    """Make a subclass of `Options` a frozen dataclass that checks its values when it is built."""
    made: Any = pydantic.dataclasses.dataclass(
        frozen=True,
        kw_only=True,
        slots=True,
        config=ConfigDict(
            extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
        ),
    )(cls)
    validate = made.__init__

    def __init__(self: Any, **values: Any) -> None:  # noqa: N807
        try:
            validate(self, **values)
        except ValidationError as error:
            raise ValueError(_first_problem(made, values, error)) from None

    made.__init__ = __init__
    return cast(_Class, made)


class Options:
    """A section of the configuration."""

    __slots__ = ()
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take a mapping for a section, though values are strict."""
        schema = handler(source)
        cast(dict[str, Any], handler.resolve_ref_schema(schema))["strict"] = False
        return schema

    @classmethod
    def of(cls, values: Any) -> Self:
        """The options that a mapping gives, as YAML or JSON hold it.

        Raises:
            ValueError: one line that names the key.
        """
        try:
            return TypeAdapter(cls).validate_python(values)
        except ValidationError as error:
            raise ValueError(_first_problem(cls, values, error)) from None

    def keys_in_use(self) -> Iterable[str]:
        """The keys that count; a class whose sections exclude each other leaves out some."""
        return [item.name for item in dataclasses.fields(self)]

    def files(self, select: Callable[[InputPath], bool] = lambda _: True) -> dict[str, str]:
        """The input files and folders by dotted key; `data[0]` where the key holds a list.

        Args:
            select: which of them, by the mark on their key.
        """
        found: dict[str, str] = {}

        def visit(key: str, path: str, mark: InputPath) -> str:
            if select(mark):
                found[key] = path
            return path

        self.map_files(visit)
        return found

    def map_files(self, change: Callable[[str, str, InputPath], str], prefix: str = "") -> Self:
        """The same options with every input path replaced by `change(key, path, mark)`."""
        marks, changed = _marks(type(self)), {}
        for name in self.keys_in_use():
            value = getattr(self, name)
            if isinstance(value, Options):
                new: Any = value.map_files(change, f"{prefix}{name}.")
            elif mark := marks.get(name):
                new = _map_value(value, f"{prefix}{name}", mark, change)
            else:
                continue
            if new != value:
                changed[name] = new
        return dataclasses.replace(self, **changed) if changed else self

    def without_files(self) -> dict[str, Any]:
        """The keys that name no files, for JSON: what counts besides the content of the files."""
        marks = _marks(type(self))
        return {key: value for key, value in dataclasses.asdict(self).items() if key not in marks}


def _hints(cls: type[Options]) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _marks(cls: type[Options]) -> dict[str, InputPath]:
    """The keys that name files, with their marks."""

    def mark(hint: Any) -> InputPath | None:
        if isinstance(hint, InputPath):
            return hint
        return next((found for part in get_args(hint) if (found := mark(part))), None)

    names = (item.name for item in dataclasses.fields(cls))
    return {name: found for name in names if (found := mark(_hints(cls)[name]))}


def _map_value(
    value: Any, key: str, mark: InputPath, change: Callable[[str, str, InputPath], str]
) -> Any:
    if isinstance(value, str):
        return change(key, value, mark)
    if isinstance(value, Mapping):
        return {name: _map_value(v, f"{key}.{name}", mark, change) for name, v in value.items()}
    if isinstance(value, list):
        return [_map_value(v, f"{key}[{i}]", mark, change) for i, v in enumerate(value)]
    return value


def section_type(hint: Any) -> type[Options] | None:
    """The options class that a field's type names, alone or in a union."""
    if isinstance(hint, type) and issubclass(hint, Options):
        return hint
    return next((found for part in get_args(hint) if (found := section_type(part))), None)


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "key: value",
    "dataclass_type": "key: value",
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
"""What a value must be, by pydantic's type of error."""
_BOUNDS = ("gt", "ge", "lt", "le")
_UNKNOWN = ("unexpected_keyword_argument", "invalid_key")


def _first_problem(cls: type[Options], values: Any, error: ValidationError) -> str:
    """The first error that pydantic found in one line; unknown keys go before other errors."""
    problems = [(_path(values, item), item) for item in error.errors(include_url=False)]
    path, _ = next((item for item in problems if item[1]["type"] in _UNKNOWN), problems[0])
    # A value of a union has an error for each of its types; the type that fits best gets furthest.
    related = [item for item in problems if item[0][: len(path)] == path]
    path, problem = max(related, key=lambda item: len(item[0]))
    key, kind, context = _dotted(path), problem["type"], problem.get("ctx", {})
    bounds = {name: f"{n:,}".removesuffix(".0") for name, n in context.items() if name in _BOUNDS}
    owner = _section_at(cls, path[:-1]) if path else None
    nullable = owner and type(None) in get_args(_hints(owner).get(str(path[-1])))
    if kind in _UNKNOWN:
        assert owner is not None
        known = [item.name for item in dataclasses.fields(owner)]
        near = difflib.get_close_matches(str(path[-1]), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        return f"{key}: unknown key; {hint}"
    if kind == "missing":
        return f"{key}: is missing"
    if kind == "too_short":
        return f"{key}: must not be empty{'; null is allowed' if nullable else ''}"
    if kind == "value_error":  # a check across fields names the field, one of a field does not
        return f"{key}{'.' if _section_at(cls, path) else ': '}{context['error']}".lstrip(".")
    if kind not in _EXPECTED:
        return f"{key or 'configuration'}: {problem['msg']}"
    expected = [
        _EXPECTED[p["type"]].format(**{**context, **bounds}) for at, p in related if at == path
    ]
    if kind == "literal_error":
        expected = [expected[0].replace("'", "")]
    if nullable:
        expected.append("null")
    value = "null" if problem["input"] is None else repr(problem["input"])
    return f"{key or 'configuration'}: must be {' or '.join(expected)}, not {value}"


def _path(values: Any, problem: ErrorDetails) -> tuple[int | str, ...]:
    """Where pydantic found an error, without the names that it gives to the types of a union."""
    path: list[int | str] = []
    for step in problem["loc"]:
        if isinstance(values, Mapping) and (step in values or problem["type"] == "missing"):
            path.append(str(step))
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int):
            path.append(step)
            values = values[step]
    return tuple(path)


def _dotted(path: tuple[int | str, ...]) -> str:
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path).lstrip(".")


def _section_at(cls: type[Options], path: tuple[int | str, ...]) -> type[Options] | None:
    found: type[Options] | None = cls
    for step in path:
        found = section_type(_hints(found).get(str(step))) if found else None
    return found
