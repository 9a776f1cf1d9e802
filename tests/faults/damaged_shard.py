"""Shards are damaged between two stages: found by their checksums, and made again."""

import shutil
import sys
from pathlib import Path

from tests.faults.ground import Ground, main
from tests.run_helpers import part_file


def fault(ground: Ground) -> None:
    """Change one bit of a part file of every stage, then let the last stage run again."""
    ground.configure("run")
    run = ground.folder / "run"
    shutil.copytree(ground.undisturbed(), run)
    before = written(run)
    damaged = [part_file(run / stage, "part-00000-00003") for stage in ("back_translate", "bucket")]
    for path in damaged:
        flip(path)
        ground.say(f"changed a bit of {path.relative_to(ground.folder)}")
    for stage in ("score", "corpus"):
        shutil.rmtree(run / stage)
        ground.say(f"removed {stage}/, so that what it reads is read again")
    said = ground.finish("run")
    for path in damaged:
        line = f"{path}: damaged, made again"
        ground.expect(f"the run says: {line}", said.count(line) == 1)
    again = {name for name, inode in written(run).items() if before[name] != inode}
    ground.expect("of the translations only one shard was made again", again == {damaged[0].name})
    ground.same(str(run))


def written(run: Path) -> dict[str, int]:
    """The part files of the translations, and which file each is: one written again is another."""
    return {path.name: path.stat().st_ino for path in (run / "back_translate").glob("*.parquet")}


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
