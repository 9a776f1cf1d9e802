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
Change = Callable[[str, str, InputPath], str]


def former_name(name: str) -> Any:
    """Mark a renamed key: files that were written with its former name can still be read.

    `as_json` writes the former name, so that the content keys of finished stages stay the same.
    """
    return Field(validation_alias=name, serialization_alias=name)


_Class = TypeVar("_Class", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def options(cls: _Class) -> _Class:
    """Make a subclass of `Options` a frozen dataclass that checks its values when it is built."""
    made: Any = pydantic.dataclasses.dataclass(
        frozen=True,
        kw_only=True,
        slots=True,
        config=ConfigDict(
            extra="forbid",
            strict=True,
            allow_inf_nan=False,
            use_attribute_docstrings=True,
            validate_by_name=True,
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

    def map_files(self, change: Change) -> Self:
        """The same options with every input path replaced by `change(key, path, mark)`."""
        return cast(Self, _map_files(self, "", None, change))

    def as_json(self) -> dict[str, Any]:
        """All keys and values; renamed keys have their former names."""
        return cast(dict[str, Any], TypeAdapter(type(self)).dump_python(self, by_alias=True))

    def without_files(self) -> dict[str, Any]:
        """The keys that name no files, for JSON: what counts besides the content of the files."""
        marks = _marks(type(self))
        return {key: value for key, value in self.as_json().items() if key not in marks}


def _map_files(value: Any, key: str, mark: InputPath | None, change: Change) -> Any:
    if isinstance(value, Options):
        marks, changed = _marks(type(value)), {}
        for name in value.keys_in_use():
            old = getattr(value, name)
            new = _map_files(old, f"{key}.{name}".lstrip("."), marks.get(name), change)
            if new != old:
                changed[name] = new
        return dataclasses.replace(value, **changed) if changed else value
    if mark and isinstance(value, str):
        return change(key, value, mark)
    if mark and isinstance(value, Mapping):
        return {n: _map_files(item, f"{key}.{n}", mark, change) for n, item in value.items()}
    if mark and isinstance(value, list):
        return [_map_files(item, f"{key}[{i}]", mark, change) for i, item in enumerate(value)]
    return value


def _hints(cls: type[Options]) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _marks(cls: type[Options]) -> dict[str, InputPath]:
    """The keys that name files, with their marks."""
    found = {
        name: _find(hint, lambda part: isinstance(part, InputPath))
        for name, hint in _hints(cls).items()
    }
    return {name: mark for name, mark in found.items() if mark}


def section_type(hint: Any) -> type[Options] | None:
    """The options class that a field's type names, alone or in a union."""
    found = _find(hint, lambda part: isinstance(part, type) and issubclass(part, Options))
    return cast(type[Options] | None, found)


def _find(hint: Any, test: Callable[[Any], bool]) -> Any:
    """The first part of a type, at any depth, that passes a test."""
    if test(hint):
        return hint
    return next((found for part in get_args(hint) if (found := _find(part, test))), None)


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
_UNKNOWN = ("unexpected_keyword_argument", "invalid_key")


def _first_problem(cls: type[Options], values: Any, error: ValidationError) -> str:
    """The first error that pydantic found in one line; unknown keys go before other errors."""
    problems = [(_path(values, item), item) for item in error.errors(include_url=False)]
    path, _ = next((item for item in problems if item[1]["type"] in _UNKNOWN), problems[0])
    # A value of a union has an error for each of its types; the type that fits best gets furthest.
    related = [item for item in problems if item[0][: len(path)] == path]
    path, problem = max(related, key=lambda item: len(item[0]))
    key = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path).lstrip(".")
    section = _section_at(cls, path)
    owner = _section_at(cls, path[:-1]) if path else None
    nullable = owner and type(None) in get_args(_hints(owner).get(str(path[-1])))
    match problem["type"]:
        case "unexpected_keyword_argument" | "invalid_key":
            known = [item.name for item in dataclasses.fields(owner or cls)]
            near = difflib.get_close_matches(str(path[-1]), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            return f"{key}: unknown key; {hint}"
        case "missing":
            return f"{key}: is missing"
        case "too_short":
            return f"{key}: must not be empty{'; null is allowed' if nullable else ''}"
        case "value_error":  # a section's check names the key below it
            return f"{key}{'.' if section else ': '}{problem['ctx']['error']}".lstrip(".")
    expected = [_expected(item) for at, item in related if at == path]
    value = "null" if problem["input"] is None else repr(problem["input"])
    choices = " or ".join([*expected, *(["null"] if nullable else [])])
    return f"{key or 'configuration'}: must be {choices}, not {value}"


def _expected(problem: ErrorDetails) -> str:
    context = {
        name: f"{value:,}".removesuffix(".0") if isinstance(value, int | float) else str(value)
        for name, value in problem.get("ctx", {}).items()
    }
    return _EXPECTED.get(problem["type"], problem["msg"]).format(**context).replace("'", "")


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


def _section_at(cls: type[Options], path: tuple[int | str, ...]) -> type[Options] | None:
    found: type[Options] | None = cls
    for step in path:
        found = section_type(_hints(found).get(str(step))) if found else None
    return found
