"""Packaging of Paraloom: three packages, one console script."""

from setuptools import find_packages, setup

setup(
    name="paraloom",
    version="0.1.0",
    description="Paraphrase corpora and paraphrastic sentence embeddings from bitext",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["models*", "beam_jobs*", "pipeline*"]),
    package_data={"models": ["py.typed"], "beam_jobs": ["py.typed"], "pipeline": ["py.typed"]},
    install_requires=[
        "apache-beam",
        "ctranslate2",
        "fairseq-fixed",
        "numpy",
        "opus-fast-mosestokenizer",
        "psutil",
        "pyarrow",
        "pyyaml",
        "rich",
        "sacrebleu",
        "sacremoses",
        "safetensors",
        "scipy",
        "sentence-transformers",
        "sentencepiece",
        "spacy",
        "torch",
        "xxhash",
    ],
    entry_points={"console_scripts": ["paraloom = pipeline.cli:main"]},
)
