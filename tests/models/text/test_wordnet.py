"""Antonyms from files of WordNet's form."""

from pathlib import Path

import pytest

from paraloom.models.errors import UserError
from paraloom.models.text.wordnet import find_wordnet, open_antonyms

DATA = {
    "noun": """  1 This software is provided ! under the following license.
00000001 18 n 02 man 0 adult_male 0 002 @ 00000009 n 0000 ! 00000002 n 0101 | an adult ! one
00000002 18 n 02 adult_female 0 woman 1 002 @ 00000009 n 0000 ! 00000001 n 0201 | an adult
00000009 18 n 01 person 0 000 | ! 00000001 n 0101
""",
    "verb": "00000001 30 v 01 begin 0 001 ! 00000007 v 0102 01 + 02 00 | start\n"
    "00000007 30 v 02 stop 0 end 0 001 ! 00000001 v 0201 01 + 02 00 | finish\n",
    "adj": "00000001 00 a 01 Open(p) 0 001 ! 00000004 a 0101 | ajar\n"
    "00000004 00 a 01 closed(a) 0 001 ! 00000001 a 0101 | shut\n",
    "adv": "00000001 02 r 01 well 0 001 ! 00000002 r 0101 | right\n"
    "00000002 02 r 01 badly 0 001 ! 00000001 r 0101 | ill\n",
}


def write(folder: Path, data: dict[str, str]) -> Path:
    folder.mkdir()
    for kind, lines in data.items():
        (folder / f"data.{kind}").write_text(lines)
    return folder


def test_pointers_name_words_of_synsets(tmp_path: Path) -> None:
    adult_female = {"man": {"adult_female"}, "adult_female": {"man"}, "woman": {"man"}}
    adult_female["man"].add("woman")
    assert open_antonyms(write(tmp_path / "w", DATA)) == {
        **adult_female,
        **{"begin": {"end"}, "end": {"begin"}, "open": {"closed"}, "closed": {"open"}},
        **{"well": {"badly"}, "badly": {"well"}},
    }


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data.noun of WordNet; apt-get install wordnet-base"):
        find_wordnet(str(tmp_path))
    cut = write(tmp_path / "w", {**DATA, "adj": DATA["adj"].splitlines()[0]})
    with pytest.raises(UserError, match="cannot be read as WordNet"):
        open_antonyms(cut)
