from benchmarks.near_duplicates import CHANGED, SIDES, Copy, found_in, make_copies


def test_a_copy_has_some_changed_words_on_both_sides() -> None:
    rows, copies = make_copies(3)
    by_id = {row["id"]: row for row in rows}
    assert [of.changed for of in copies] == [count for count in CHANGED for _ in range(3)]
    assert [row["id"] for row in rows[: len(copies)]] == [of.original for of in copies]
    for of in copies:
        for side in SIDES:
            first, second = (by_id[id_][side].split() for id_ in (of.original, of.id))
            assert sum(a != b for a, b in zip(first, second, strict=True)) == of.changed


def test_a_copy_is_found_if_it_or_its_original_is_rejected() -> None:
    copies = [
        Copy(f"copy-{n}", f"original-{n}", count) for n, count in enumerate((1, 1, 2, 2, 4, 4))
    ]
    rejected = {"copy-0", "original-1", "copy-2", "original-2", "generated-7"}
    assert found_in(rejected, copies) == ["100.0%", "50.0%", "0.0%", "1"]
    assert found_in(set(), copies) == ["0.0%", "0.0%", "0.0%", "0"]
