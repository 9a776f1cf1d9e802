"""The disk is full during a write: one line, and with more room the run goes on."""

import subprocess
import sys

from tests.faults.ground import Ground, main


def fault(ground: Ground) -> None:
    """Run on a disk that holds a few translated shards, and then on a larger one."""
    disk = ground.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=112k", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        ground.say(f"skipped: a small disk cannot be mounted here ({done.stderr.strip()})")
        return
    try:
        ground.configure("run", str(disk / "run"))
        (ground.folder / "run").symlink_to(disk / "run")
        said = ground.finish("run", expected=2).strip().splitlines()[-1]
        ground.say(f"on a disk of 112 KiB the run ends: {said}")
        ground.expect("in one line that names the file and the reason", "No space left" in said)
        before = ground.finished("run")
        ground.expect(f"{len(before)} shards are translated, not all", 0 < len(before) < 12)
        left = [p.name for p in disk.rglob("*") if p.is_file() and p.stat().st_size == 0]
        ground.say(f"empty files that it left: {left}")
        subprocess.run(["mount", "-o", "remount,size=10m", str(disk)], check=True)
        ground.say("the disk has 10 MiB now")
        ground.finish("run")
        ground.once("run", before, under_way=2)
        ground.same(str(disk / "run"))
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
