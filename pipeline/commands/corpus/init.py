"""`paraloom init`: writes a configuration for the user's files."""

import io
import re
import shlex
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, count, islice
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from paraloom.beam_jobs.bitext import READERS, Layout, Paths, find_bitext, opus
from paraloom.beam_jobs.bitext.lines import file_errors, open_text
from paraloom.beam_jobs.bitext.preview import BitextPreview, preview
from paraloom.models import hub
from paraloom.models.errors import UserError
from paraloom.models.files import PACKED, atomic_file
from paraloom.models.languages import CODES, ENGLISH, language_name, no_code
from paraloom.models.printing import say, show
from paraloom.models.structured import parse_yaml
from paraloom.models.text.files import CHUNK, NAME, PARQUET, csv_delimiter, csv_rows
from paraloom.models.text.language_identifier import LANGUAGES, may_be, spoken
from paraloom.pipeline.commands.console import console
from paraloom.pipeline.commands.corpus.estimate import estimate, job_table
from paraloom.pipeline.commands.options import argument, check_unused, option
from paraloom.pipeline.config.read import SAMPLE, is_sample, parse_config
from paraloom.pipeline.pages.render import environment
from paraloom.pipeline.stages import back_translate

_READ = 500  # rows that are read to identify their language
_BY_COLUMNS = {1: "moses", 2: "tsv", 3: "tsv", 4: "czeng16", 6: "czeng20"}
_IDS = ("id", "caption_id", "uid", "tuid")  # names that columns of ids usually have
_COLUMNS = ("id", "source", "reference", "translation", "target", "src", "tgt", "trg", "margin")
_OPUS = "opus:"
_SEGMENT = "xml:lang="  # prefix of the names of TMX segments
_ENCODERS = "all-MiniLM-L6-v2", "paraphrase-multilingual-MiniLM-L12-v2"


def command(
    context: typer.Context,
    files: Annotated[
        list[str], argument("FILES…", "Files of a bitext (both sides for Moses), or opus:NAME.")
    ],
    out: Annotated[Path, option("FILE", "Configuration to write.")] = Path("paraloom.yaml"),
    model: Annotated[
        str | None, option("NAME", "Translation model: a folder or a name on the Hub.")
    ] = None,
    start: Annotated[
        str | None,
        option("FILE", "Copy all sections except run and input from FILE or `sample`.", "--from"),
    ] = None,
    source_language: Annotated[str, option("CODE", "Source language of opus:NAME.")] = "cs",
    target_language: Annotated[str, option("CODE", "Target language of opus:NAME.")] = ENGLISH,
) -> None:
    """Detect the format, columns and languages of files, and write a short configuration.

    If --model or the file of --from names a translation model, also estimate the time and disk
    space of the run. An existing configuration is not replaced.
    """
    if start and model:
        raise UserError("init: give --model or --from, but not both, since both name a model")
    if out.exists():
        raise UserError(f"{out}: already exists; name another file with --out")
    codes, named = (source_language, target_language), files[0].startswith(_OPUS)
    if not named:
        check_unused(context, "opus:NAME", "source_language", "target_language")
    options, seen = _opus(files, codes) if named else find_input(files)
    if options["format"] == "pairs":
        check_unused(context, "a text to translate", "model")
    text = "# Written by `paraloom init`. docs/configuration.md describes all keys.\n"
    text += f"run: {_free_run(Path(files[0]).name, out)}\ninput:\n"
    for key, value in options.items():  # JSON on one line is valid YAML
        text += f"  {key}: {dumps(value, ensure_ascii=False)}\n"
    source, target = (options.get(f"{of}_language", "") for of in ("source", "target"))
    if start:
        text += _sections(start)
    else:
        encoder = f"sentence-transformers/{_ENCODERS[target != ENGLISH]}"
        template = environment(autoescape=False).get_template("init.yaml.j2")
        text += template.render(
            source=source,
            target=target,
            model=dumps(model, ensure_ascii=False),
            mined=options["format"] == "pairs",
            encoder=encoder,
            has_encoder=hub.cached(encoder),
        )
    values = parse_yaml(text, str(out))
    config = parse_config(values, where=str(out))  # raises errors before `out` is written
    if source == ENGLISH != target and not named:  # init cannot swap columns without names
        say(
            f"init: {files[0]}: the first side is English and becomes the source, so paraphrases "
            f"are {language_name(target)}; for English paraphrases, swap the columns of the file"
        )
    back_translate.check(config)
    with atomic_file(out) as path:
        path.write_text(text, "utf-8")
    if config.nmt.model and config.translates:
        console().print(job_table(estimate(config).jobs))
    if seen.rejected > 0.5:
        say(f"init: {seen.rejected:.0%} of the first rows cannot be used ({seen.reason})")
    about = "" if seen.counted else "about "
    languages = f"{source} to {target}".removeprefix(" to ")
    show(f"{out}: {options['format']}, {languages}, {about}{seen.rows:,} rows")
    for name in ("estimate", "preview", "corpus"):
        show(f"  paraloom {name} --config {shlex.quote(str(out))}")


def _free_run(name: str, out: Path) -> str:
    """Return a run folder that does not exist and that no configuration beside `out` names."""
    stem = re.sub(r"[^\w-]+", "-", name.split(".")[0]) or "mine"
    named = set[str]()
    for path in out.absolute().parent.glob("*.y*ml"):
        with suppress(OSError):
            text = path.read_text("utf-8", "replace")
            named.update(re.findall(r"^run: *[\"']?([^\s\"']+)", text, re.M))
    folders = (f"runs/{stem}-{n}" if n > 1 else f"runs/{stem}" for n in count(1))
    return next(run for run in folders if run not in named and not Path(run).exists())


def find_input(files: list[str]) -> tuple[dict[str, Any], BitextPreview]:
    """Return the keys of `input` for the files, and the first rows of the files."""
    paths = [str(Path(file).absolute()) for file in files]
    kinds = {_format(path): path for path in paths}
    if len(kinds) > 1:
        found = ", ".join(f"{kind} ({path})" for kind, path in kinds.items())
        raise UserError(f"the files have several formats: {found}; give files of one format")
    (form,), given, layout = kinds, dict[str, Any](paths=paths), Layout()
    names = {*_names(form, paths[0])} if form == "parquet" else {"source"}
    if "source" not in names and names >= {"reference", "translation"}:
        form = "pairs"
    if form == "moses":
        given = {"paths": _sides(paths)}
    elif form == "tmx":
        layout = Layout(languages=_tmx_languages(paths[0]))
    elif form in ("parquet", "jsonl", "csv"):
        given["columns"] = _columns(form, paths)
        layout = Layout(columns=given["columns"])
    seen = _preview(form, given["paths"], layout)
    if form in ("parquet", "jsonl", "csv", "tmx") and (name := _ids(form, paths, layout, seen)):
        given["columns"] = {**layout.columns, "id": name}
    source, target = (_language(seen, side) for side in ("source", "reference"))
    if form == "moses" and source == ENGLISH != target:
        one, two = given["paths"].values()
        given = {"paths": {"source": two, "reference": one}}
        source, target = target, source
    if form == "tmx":
        source, target = layout.languages
    if form == "pairs" or (form == "tsv" and source == target):
        return {"format": "pairs", **given, "target_language": target}, seen
    return {"format": form, **given, "source_language": source, "target_language": target}, seen


def _sides(paths: list[str]) -> dict[str, str | list[str]]:
    """Return the files of each side. In a.cs a.en b.cs b.en, the endings name the sides."""
    if len(paths) == 2:
        return {"source": paths[0], "reference": paths[1]}
    endings: dict[str, dict[str, str]] = {}  # paths by ending, then by the rest of the path
    for path in paths:
        stem, _, ending = PACKED.sub("", path).rpartition(".")
        endings.setdefault(ending, {})[stem] = path
    sides = [*endings.values()]
    if len(sides) != 2 or sides[0].keys() != sides[1].keys() or 2 * len(sides[0]) != len(paths):
        raise UserError(
            f"{paths[0]}: not tab-separated, Parquet, JSON Lines, CSV or TMX; if it has one "
            "sentence per line, also give the file of the other language; name several pairs of "
            "files as in a.cs a.en b.cs b.en"
        )
    return {"source": [*sides[0].values()], "reference": [sides[1][stem] for stem in sides[0]]}


def _opus(files: list[str], codes: tuple[str, str]) -> tuple[dict[str, Any], BitextPreview]:
    bitexts = find_bitext("opus", [of.removeprefix(_OPUS) for of in files], Layout(codes=codes))
    found = [opus.terms(bitext.paths[0]) for bitext in bitexts]
    return {
        "format": "opus",
        "paths": [f"{of['corpus']}@{of['version']}" for of in found],
        **dict(zip(("source_language", "target_language"), codes, strict=True)),
        "license": "; ".join(dict.fromkeys(of["license"] or "not stated" for of in found)),
    }, preview(bitexts, rows=_READ, max_characters=2_000)


def _format(path: str) -> str:
    if Path(path).is_dir():
        raise UserError(f"{path}: is a folder; give its files, or set input.format: hub")
    with file_errors(path), Path(path).open("rb") as raw:
        if raw.read(len(PARQUET)) == PARQUET:
            return "parquet"
    with open_text(path) as stream:
        head = stream.read(CHUNK)
    lines = io.BytesIO(head)
    line = next((text for text in islice(lines, 100) if text.strip()), b"").strip(b"\r\n")
    if line.lstrip().startswith(b"{"):
        return "jsonl"
    if csv_delimiter(head):
        return "csv"
    if PACKED.sub("", path).endswith(".csv") and b"\t" not in line:
        text = io.StringIO(head.decode(errors="replace"), newline="")
        rows = csv_rows(text, csv_delimiter(head, named=True) or ",")
        first = f"line 1 is {line[:80].decode(errors='replace')}"
        why = next((f"line {number:,}: {fault}" for number, _, fault in rows if fault), first)
        raise UserError(
            f"{path}: is not CSV with column names in line 1 ({why}); mend the file, or set "
            "input.format: csv, which rejects only the invalid rows"
        )
    if line.lstrip().startswith((b"<?xml", b"<tmx", b"<!DOCTYPE tmx")):
        return "tmx"
    names = line.decode(errors="replace").split("\t")
    columns = len(names)
    # A header contains only names. If it has two or three names, at least two must be usual names
    # of columns, and none may have a digit, because the line may also be a pair of sentences, alone
    # or with an id like s1.
    usual = columns > 3 or (sum(map(_names_column, names)) > 1 and not re.search(rb"\d", line))
    texts = [text.decode(errors="replace").split("\t") for text in islice(lines, _READ)]
    usual = usual and (columns > 3 or _may_name_languages(names, texts))
    if 1 < columns == len({*names}) and usual and all(map(NAME.fullmatch, names)):
        if b'"' not in head:
            return "csv"
        raise UserError(
            f"{path}: the first line names columns, but the file has quotes; if they enclose "
            "fields, as in CSV, set input.format: csv; if not, remove the first line"
        )
    if columns not in _BY_COLUMNS:
        raise UserError(f"{path}: no input.format has {columns} columns; see docs/inputs.md")
    return _BY_COLUMNS[columns]


def _names_column(word: str) -> bool:
    return _is_code(word) or word.lower() in _COLUMNS or word.lower() in CODES


def _is_code(word: str) -> bool:
    return len(word) == 2 and (word.islower() or word.isupper()) and not no_code(word)


def _may_name_languages(names: list[str], rows: list[list[str]]) -> bool:
    """Return whether a line has no codes, or a code that fits the language of its column.

    Some codes are also words, such as "no". A code that the identifier does not know always fits.
    """

    def is_spoken(place: int, code: str) -> bool:
        texts = pa.array([row[place] for row in rows if len(row) == len(names)], pa.string())
        return code not in LANGUAGES or 2 * int(may_be(texts, code).sum()) > len(texts)

    codes = {place: name.lower() for place, name in enumerate(names) if _is_code(name)}
    return not codes or any(is_spoken(*item) for item in codes.items())


def _columns(form: str, paths: list[str]) -> dict[str, str]:
    """Choose the two languages with the longest texts, and return their columns."""
    names = _names(form, paths[0])
    found: dict[str, tuple[float, str]] = {}  # by language: mean number of characters, and column
    for name in names:
        with suppress(UserError):  # the column has no text
            seen = _preview(form, paths[:1], Layout(columns={"source": name, "reference": name}))
            length = pc.mean(pc.utf8_length(seen.pairs["source"])).as_py()
            language = _language(seen, "source")
            found[language] = max(found.get(language, (0.0, "")), (length, name))
    if len(found) < 2:
        raise UserError(
            f"{paths[0]}: no two columns ({', '.join(names)}) differ in language; for "
            "pairs in one language, set input.format: pairs (text without a header row, or Parquet)"
        )
    two = sorted(found, key=lambda language: -found[language][0])[:2]
    source, target = _english_last(sorted(two, key=lambda of: names.index(found[of][1])))
    return {"source": found[source][1], "reference": found[target][1]}


def _tmx_languages(path: str) -> tuple[str, str]:
    """Return the two languages that most translation units have. In a tie, prefer English."""
    found = Counter[tuple[str, ...]]()
    for unit in READERS["tmx"].head(path)[0]:  # type: ignore[attr-defined]
        codes = sorted(name.removeprefix(_SEGMENT) for name in unit if name.startswith(_SEGMENT))
        found.update(combinations(codes, 2))
    if not found:
        raise UserError(f"{path}: the first translation units are not in two languages")
    source, target = _english_last([*max(found, key=lambda two: (found[two], ENGLISH in two))])
    return source, target


def _ids(form: str, paths: list[str], layout: Layout, seen: BitextPreview) -> str:
    for name in (name for name in _IDS if name in _names(form, paths[0])):
        with suppress(UserError):  # the column has neither text nor numbers
            columns = {**layout.columns, "id": name}
            ids = _preview(form, paths, replace(layout, columns=columns)).pairs["id"]
            if len(ids) == len(seen.pairs) == pc.count_distinct(ids).as_py():
                return name
    return ""


def _english_last(languages: list[str]) -> list[str]:
    return sorted(languages, key=lambda language: language == ENGLISH)


def _preview(form: str, paths: Paths, layout: Layout) -> BitextPreview:
    return preview(find_bitext(form, paths, layout), rows=_READ, max_characters=2_000)


def _language(seen: BitextPreview, side: str) -> str:
    if not (language := spoken(seen.pairs[side]).language):
        raise UserError(f"input: the first rows have no {side} with letters")
    return language


def _names(form: str, path: str) -> list[str]:
    return list(READERS[form].head(path)[1])  # type: ignore[attr-defined]


def _sections(start: str) -> str:
    path = SAMPLE / "sample.yaml" if is_sample(start) else Path(start)
    text = path.read_text("utf-8-sig")
    text = text.replace('"${PARALOOM_SAMPLE}/cs-en"', "null")  # the model fits only the sample
    text = text.replace("${PARALOOM_SAMPLE}", str(SAMPLE))
    sections = re.split(r"^(?=\w+:)", text, flags=re.MULTILINE)[1:]
    return "".join(of for of in sections if not re.match("(run|input):", of))
