#!/bin/sh
# Installs a worker, step by step: the same in the image as in a clean Debian root (rehearse.sh).
# It needs Python with pip, and the repository's files in the working directory.
set -eu

pip() { python3 -m pip install --no-cache-dir --disable-pip-version-check "$@"; }

case "${1:-}" in
dependencies) # needs pyproject.toml and a lock alone, so that the layer is cached
    # READTHEDOCS: see pyproject.toml.
    export READTHEDOCS=1
    pip --constraint requirements.lock '.[all]'
    ;;
gpu) # CUDA 12's runtime for CTranslate2; torch's wheels bring their own
    pip "nvidia-cublas-cu12==$2"
    ;;
package)
    pip --no-deps --force-reinstall .
    python3 -m pip check
    ;;
*)
    echo "usage: $0 dependencies | gpu VERSION | package" >&2
    exit 2
    ;;
esac
