import itertools

from paraloom.beam_jobs.io import schema


def test_each_stage_only_adds_columns() -> None:
    scorers = ("translation_score", "trigram_overlap", "paragram_similarity")
    stages = [
        schema.INGEST,
        schema.BACK_TRANSLATE,
        schema.scored(scorers),
        schema.bucketed(scorers),
    ]
    for before, after in itertools.pairwise(stages):
        assert list(after)[: len(before)] == list(before)
    assert {field.name: str(field.type) for field in stages[-1]} == {
        "id": "string",
        "source": "string",
        "reference": "string",
        "translation": "string",
        "translation_score": "float",
        "translation_subwords": "int16",
        "reference_tokens": "int16",
        "translation_tokens": "int16",
        "trigram_overlap": "float",
        "paragram_similarity": "float",
        "translation_score_decile": "int8",
        "trigram_overlap_decile": "int8",
        "paragram_similarity_decile": "int8",
    }
    assert not any(field.nullable for field in stages[-1])
