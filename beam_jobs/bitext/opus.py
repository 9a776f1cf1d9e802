"""Download corpora of OPUS to the user's cache.

The environment variable `OPUS_ENDPOINT` names another server with the interface of OPUS.
"""

import json
import os
import re
import shutil
import time
import zipfile
import zlib
from pathlib import Path
from urllib.parse import urlencode

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import atomic_folder, locked, user_cache
from paraloom.models.memory import check_zip
from paraloom.models.progress import meter

_CITATION = "J. Tiedemann, 2012, Parallel Data, Tools and Interfaces in OPUS. In LREC 2012"
_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)(?:@([A-Za-z0-9][\w.-]*))?", re.ASCII)
_SECONDS, _FAILURES, _PAUSE = 60, 5, 1.0  # timeout (s), maximum failures in a row, pause (s)


def fetch(name: str, codes: tuple[str, str]) -> tuple[str, str]:
    """Return the cached source and reference files of `corpus` or `corpus@version`.

    A missing corpus is downloaded. Without a version, the first call chooses the latest version,
    and later calls return the same version.
    """
    match, pair = _NAME.fullmatch(name), "-".join(sorted(codes))
    if not match or not re.fullmatch(r"[\w-]+", pair):
        raise UserError(f"input.paths: {name} is not a corpus name, such as Books or Books@v1")
    home, version = user_cache() / "opus" / match[1], match[2]
    latest = home / f"latest.{pair}"
    failed = f"input.paths: {name}: cannot be fetched now; try again to continue the download, or "
    failed += "fetch its Moses files elsewhere and read them with format: moses"
    with locked(home / ".lock"), in_one_line(failed):
        version = version or (latest.read_text() if latest.is_file() else None)
        if not (home / f"{version}.{pair}").is_dir():
            found, url = _look_up(match[1], version, codes)
            if not (folder := home / f"{found}.{pair}").is_dir():
                part = home / f"{found}.{pair}.zip.part"
                _download(url, part)
                _unpack(part, folder, codes)
            if not version:
                latest.write_text(found)
            version = found
    return _sides(home / f"{version}.{pair}", codes)


def terms(file: str) -> dict[str, str]:
    """Return the corpus, version, licence and citation of a cached file."""
    *_, corpus, folder, _ = Path(file).parts
    paths = [Path(file).with_name(name) for name in ("LICENSE", "README")]
    own, about = (path.read_text("utf-8", "replace") if path.is_file() else "" for path in paths)
    license = re.search(r"\S.*", own) or re.search(r"(?<=License:).*", about) or [""]
    cite = re.search(r"\bcite\b.*\n\s*((?:.*\S.*\n?)+)", about) or ["", _CITATION]
    found = {"corpus": corpus, "version": folder.rpartition(".")[0], "license": license[0]}
    return {key: " ".join(text.split()) for key, text in {**found, "citation": cite[1]}.items()}


def _sides(folder: Path, codes: tuple[str, str]) -> tuple[str, str]:
    source, reference = (next(map(str, folder.glob(f"*.{code}")), "") for code in codes)
    return source, reference


def _look_up(corpus: str, version: str | None, codes: tuple[str, str]) -> tuple[str, str]:
    from urllib.request import urlopen  # imported here, because few commands need a network

    base = os.environ.get("OPUS_ENDPOINT") or "https://opus.nlpl.eu/opusapi"
    asked = {"corpus": corpus, "source": codes[0], "target": codes[1], "preprocessing": "moses"}
    with urlopen(f"{base.rstrip('/')}/?{urlencode(asked)}", timeout=_SECONDS) as answer:
        found = {of["version"]: of for of in json.load(answer)["corpora"]}
    known = {version: of for version, of in found.items() if _NAME.fullmatch(version)}
    version = version or next((of for of in known if str(known[of]["latest"]) == "True"), "")
    if version in known and known[version]["url"].startswith(("https://", "http://")):
        return version, known[version]["url"]
    raise UserError(
        f"input.paths: OPUS has {', '.join(sorted(known)) or 'no version'} of {corpus} for "
        f"{codes[0]} and {codes[1]}; versions are named as in {corpus}@v1; "
        "https://opus.nlpl.eu lists all corpora"
    )


def _download(url: str, part: Path) -> None:
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    failures = most = 0
    with meter("download", unit="bytes") as progress:
        while True:
            start = part.stat().st_size if part.exists() else 0
            request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
            try:
                with urlopen(request, timeout=_SECONDS) as answer:
                    start *= answer.status == 206
                    size = start + int(answer.headers["Content-Length"])
                    with part.open("ab" if start else "wb") as out:
                        while block := answer.read1(1 << 20):
                            out.write(block)
                            progress.set(out.tell(), total=size)
                if (end := part.stat().st_size) == size:
                    return
                raise OSError(f"only {end:,} of {size:,} bytes came")
            except (OSError, HTTPException) as error:
                code = getattr(error, "code", 500)
                if code == 416:  # the file is complete; the zip's checksums verify it
                    return
                end = part.stat().st_size if part.exists() else 0
                failures, most = (0 if end > most else failures + 1), max(most, end)
                if code < 500 or failures == _FAILURES:
                    raise
            time.sleep(_PAUSE * failures)


def _unpack(part: Path, folder: Path, codes: tuple[str, str]) -> None:
    one, two = codes
    wanted = re.compile(rf"[^/\\]+\.({one}-{two}|{two}-{one})\.({one}|{two})|LICENSE|README")
    try:
        with zipfile.ZipFile(part) as archive, atomic_folder(folder) as new:
            check_zip(part, archive)
            for name in filter(wanted.fullmatch, archive.namelist()):
                with archive.open(name) as packed, (new / name).open("wb") as out:
                    shutil.copyfileobj(packed, out)
            if not all(_sides(new, codes)):
                raise ValueError(f"no Moses files of {'-'.join(codes)}")
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        part.unlink()
        raise UserError(f"{part}: was not a valid zip of a corpus ({error}); try again") from error
    part.unlink()
