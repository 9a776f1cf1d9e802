#!/bin/sh
# Where there is no container engine: the image's install steps in a clean Debian root, and a worker
# pool started from it that scores a pair. As root, with debootstrap; takes minutes and some 7 GB.
#
#     docker/rehearse.sh FOLDER [MIRROR]
set -eu
root=$1
mirror=${2:-http://deb.debian.org/debian}
cd "$(dirname "$0")/.."

debootstrap --variant=minbase --include=ca-certificates,python3-dev,python3-venv \
    bookworm "$root" "$mirror"
cp /etc/hosts /etc/resolv.conf "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # of this machine, which may have more
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
pool=
trap '${pool:+kill $pool}; sleep 5; umount "$root/proc"; umount -R "$root/dev"' EXIT
chroot "$root" python3 -m venv /opt/python # stands for the Python of Beam's image

in_root() {
    chroot "$root" env -C /opt/paraloom PATH=/opt/python/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# As the Dockerfile has it.
mkdir -p "$root/opt/paraloom/docker"
cp docker/install.sh "$root/opt/paraloom/docker/"
cp pyproject.toml requirements.lock "$root/opt/paraloom/"
in_root docker/install.sh dependencies
cp setup.py "$root/opt/paraloom/"
cp -r paraloom models beam_jobs pipeline "$root/opt/paraloom/"
mkdir "$root/opt/paraloom/benchmarks"
cp -r benchmarks/papers "$root/opt/paraloom/benchmarks/"
in_root docker/install.sh package

in_root env -C / paraloom doctor
chroot "$root" env -C /tmp /opt/python/bin/python -m paraloom.beam_jobs.runners.flink.pool --service_port=50321 &
pool=$!
sleep 5
in_root env -C /tmp python - <<'PYTHON'
import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import ExternalEnvironment

from paraloom.beam_jobs.pairs import ScorePairs


def keep(row):
    with open("/tmp/scored", "w") as file:
        print("scored by a worker of the image:", row.trigram_overlap, file=file)


with beam.Pipeline(runner=FnApiRunner(ExternalEnvironment("localhost:50321"))) as pipeline:
    pairs = pipeline | beam.Create([beam.Row(id="1", reference="A dog.", translation="One dog.")])
    (pairs | ScorePairs(["trigram_overlap"])).pairs | beam.Map(keep)
PYTHON
cat "$root/tmp/scored"
