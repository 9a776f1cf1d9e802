"""What is taken off an answer, what is refused, and what stays since the pair has it itself."""

import gzip
import json
from pathlib import Path

import pytest

from paraloom.models.chat.answers import Answer, Choice, Found, Request, candidates
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.wrapping import is_refusal, unwrapped
from tests.sample import real_data

DOG = "A dog runs."
OF_A_DOG = ("Pes běží.", "The dog runs in the snow.")
AI = "As an AI language model, I cannot do this."


def found(*texts: str, given: tuple[str, ...] = OF_A_DOG, **options: object) -> list[Found]:
    values = {"kind": "chat", "name": "x", "base_url": "http://h", "model": "m", **options}
    generator = ChatGenerator.model_validate(values)
    choices = [Choice(text=text, finish="stop") for text in texts]
    return candidates(Answer(key="", choices=choices), Request(generator, "Reword it.", given))


@pytest.mark.parametrize(
    "text",
    [
        f"Sure, here is a paraphrase: {DOG}",
        f"Certainly!\n\n{DOG}",
        f"Sure! {DOG}",
        f"Hier ist sie:\n{DOG}",
        f"**Paraphrase:** {DOG}",
        f"Paraphrased sentence: “{DOG}”",
        *(mark[0] + DOG + mark[1] for mark in ('""', "“”", "„“", "『』", "«»", "''", "‘’", "``")),
        *(f"{sign} {DOG}" for sign in ("1.", "1)", "(1)", "-", "*", "•", "#", ">")),
        "A **dog** runs.",
        f'1. "{DOG}"',
        f"```text\n{DOG}\n```",
        f"<think>\nA dog, well.\n</think>\n\n{DOG}",
        f"A dog, well: {{1}}\n</think>\n\nSure:\n- {DOG}",
        f"\n {DOG}\r\n",
    ],
)
def test_what_is_around_a_sentence_is_taken_off(text: str) -> None:
    assert found(text) == [Found(DOG, None)]
    assert found(json.dumps({"paraphrases": [text]}), response="json") == [Found(DOG, None)]


def test_items_of_a_list_are_candidates_and_other_lines_are_none() -> None:
    text = f"Here are three paraphrases:\n\n1. {DOG}\n2. A dog is running.\n3. Dogs run."
    assert [of.text for of in found(text, n=2)] == [DOG, "A dog is running."]
    assert found(f"{DOG}\n\nLet me know if you need more.")[0].text is None
    assert found("Sure!")[0].text == "Sure!" and found("Sure!\n ")[0].text == "Sure!"
    listed = f'Of course: ```json\n{{"paraphrases": ["- {DOG}"]}}\n```'
    assert found(listed, response="json") == [Found(DOG, None)]
    thought = f'<think>{{"paraphrases": […]}}?</think>\n{{"paraphrases": ["{DOG}"]}}'
    assert found(thought, response="json") == [Found(DOG, None)]
    assert found("<think></think>") == [Found(None, "empty answer")]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Sure, here is a translation: a bad one.", "Here it is, the translation: a bad one."),
        ("Translation: he lied.", "In translation: he was lying."),
        ("3. Oktober ist ein Feiertag.", "Am 3. Oktober ist ein Feiertag."),
        ("- Are you coming?", "- Will you come?"), ("“Go home.”", '"Go home!"'),
        ("“Go home.”", 'He said "go home".'), ("'Go home.'", "‘Go home!’"),
        ("2**3 is 8, 3**2 is 9.", "2**3 is 8 and 3**2 is 9."),
        ("Of course! I come.", "Sure, I come."), ("* I did it.", "*I did it."),
        ("'Tis John's dog, 'tis Ann's'", OF_A_DOG[1]),
    ],
)  # fmt: skip
def test_what_the_reference_has_stays(text: str, reference: str) -> None:
    assert unwrapped(text, ["", reference]) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that.",
        "I’m sorry, but I can’t help with that request.", "Sorry, I cannot fulfill this request.",
        "Unfortunately, I'm unable to provide a paraphrase of this text.",
        "I won't be able to help you with that.", "I must decline to reword this.",
        "I can't create such content.", "I'm just an AI, and I have no opinion.", AI, f"Sure! {AI}",
        "Please provide the sentence that you'd like me to paraphrase.",
    ],
)  # fmt: skip
def test_a_refusal_in_words_is_rejected(text: str) -> None:
    assert found(text, DOG, n=2) == [Found(None, "refused (in words)"), Found(DOG, None)]
    assert found(text, given=("", text))[0].text is not None, "the reference says so, too"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("I'm sorry, but I can't help with that.", "Sorry, there I'm not able to help you."),
        ("I'm sorry, but I can't come tonight.", "He stays at home tonight."),
        ("I can't help thinking of it.", "It is always on my mind."),
        ("As an artist, I give content a form.", "Being an artist, I form content."),
        ("Please translate the text.", "The text is to be translated."),
        ("Here is a dog: it runs.", "There is a dog, it runs."),
        ("Translations are hard.", "It is hard to translate."),
    ],
)
def test_sentences_that_only_resemble_one_stay(text: str, reference: str) -> None:
    assert found(text, given=("", reference)) == [Found(text, None)]


def test_no_genuine_sentence_is_refused(data: Path) -> None:
    """Captions, and a book in which people are sorry and cannot help things."""
    captions = real_data(data / "multi30k" / "val.en.gz").read_bytes()
    texts = gzip.decompress(captions).decode().splitlines()
    book = real_data(data / "books" / "pride.txt").read_text("utf-8-sig")
    sentences = " ".join(book.split()).split(". ")
    assert len(texts) > 1000 and len(sentences) > 3000
    assert not [text for text in [*texts, *sentences] if is_refusal(text, [])]
    assert [text for text in texts if unwrapped(text, []) != [text.strip()]] == []
