"""Removal of text that language models write around a sentence, and detection of refusals."""

import re
from collections.abc import Sequence


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.I | re.S)


_YES = r"(?:sure(?: thing)?|certainly|of course|okay|ok|absolutely|no problem|yes|great)"
_TASK = r"(?:paraphras|rephras|reword|rewrit|restat|translat|version|alternative|sentence)\w*"
_LABEL = r"(?:paraphras|rephras|reword|rewrit|translat)(?:e|ed|ing|ten|ion)"
_SIGN = r"(?:[-*•>]|#{1,6}|\(?\d{1,2}[.)])\s+"
_DOUBLE = '["“”„«»‹›「」『』`]'
_AROUND = [  # (rule, guard): a rule is skipped if a sentence of the pair matches its guard
    (r"(?:sure|certainly|of course|absolutely)!\s+(.+)", rf"\b{_YES}\b"),
    (rf"(?:{_YES}\b\W*)?(?:here|this|below)\b[^:\n]*\b{_TASK}[^:\n]*:\s*(.+)", r"^[^:]*:\s*\w"),
    (rf"(?:(?:a|the|my|one)\s)?{_LABEL}(?:\s(?:sentence|text|version))?(?:\s\d+)?:\s*(.+)", _LABEL),
    (rf"{_SIGN}(.+)", r"^[-–—*•>#]|\b\d{1,2}\s?[.)]"),
    (r"(__|[*_])(?=\S)(.+)(?<=\S)\1", "[*_]"),
    (rf"{_DOUBLE}((?:(?!{_DOUBLE}).)+){_DOUBLE}", rf"^['‘]|{_DOUBLE}"),
    (r"['‘]([^'‘’]+)['’]", rf"^['‘]|{_DOUBLE}"),
]
_RULES = [(_rule(pattern), _rule(guard)) for pattern, guard in _AROUND]
_HEAD = _rule(rf".*[:：][*_]*|{_YES}\W*")
_CANNOT = (
    r"(?:can(?:no|['’])?t(?: and will not)?|can not|won['’]t(?: be able to)?|unable to|not able to|"
    r"(?:must|have to) decline to|(?:don['’]t|do not) feel comfortable)"
)
_REFUSAL = _rule(
    rf"\bi(?:['’]m| am)? {_CANNOT} (?:\w+ )?(?:(?:assist|help|comply|continue)(?: you)? with "
    r"(?:that|this|th[eo]se|your|such)|(?:fulfil\w*|process|complete) (?:that|this|your) |"
    rf"(?:provide|create|generate|write|produce|offer|give)\b[^.]*\b(?:{_TASK}|content)\b|"
    r"(?:paraphras|rephras|reword|rewrit|translat)\w* )|"
    r"\b(?:i(?:['’]m| am) (?:just |only )?|as )an? (?:AI|artificial intelligence|(?:large )?"
    r"language model)(?: language model| model| assistant)?(?:[.,]| and\b| so\b| trained\b)|"
    rf"\bprovide\b[^.]*\b(?:{_TASK}|text)\b[^.]*\b(?:paraphrase|rephrase|reword|rewrite|translate)"
)
_LIKE_A_REFUSAL = _rule(
    r"\b(?:sorry|apolog\w*|unfortunately|can(?:no|['’])?t|can not|(?:un)?able|won['’]t|declin\w*|"
    r"refus\w*|AI|artificial|language model|please|could you)\b"
)


def unwrapped(text: str, given: Sequence[str]) -> list[str]:
    """Return the sentences in an answer, without text and marks around a sentence.

    A list gives one sentence per line, and any other answer gives one sentence. Marks such as
    quotation marks are kept if the pair's sentences, `given`, contain marks of the same kind.

    >>> unwrapped("Sure! Here is a paraphrase:\\n\\n**“A dog runs.”**", ["The dog runs."])
    ['A dog runs.']
    >>> unwrapped("Here you are:\\n1. A dog runs.\\n2. A dog is running.", ["The dog runs."])
    ['A dog runs.', 'A dog is running.']
    """
    if not any("think>" in each for each in given):
        text = text.rpartition("</think>")[2]  # some servers omit the opening tag
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("```")]
    if len(lines) > 1 and _HEAD.fullmatch(lines[0]) and not any(":" in each for each in given):
        del lines[0]
    is_list = len(lines) > 1 and all(re.match(_SIGN, line) for line in lines)
    return [_plain(each, given) for each in (lines if is_list else ["\n".join(lines)])]


def _plain(text: str, given: Sequence[str]) -> str:
    if not any("**" in each for each in given):
        text = text.replace("**", "")
    for rule, guard in _RULES * 3:  # wrappings may be nested
        if (found := rule.fullmatch(text)) and not any(map(guard.search, given)):
            text = found[found.re.groups].strip()
    return text


def is_refusal(text: str, given: Sequence[str]) -> bool:
    """Return whether the model refuses, or asks for the sentence, instead of giving a candidate.

    If a sentence in `given` has words that are typical of refusals, return False.

    >>> is_refusal("I'm sorry, but I can't assist with that.", ["He shot the dog."])
    True
    >>> is_refusal("I'm sorry, but I can't assist with that.", ["Sorry, I can't help you there."])
    False
    """
    return bool(_REFUSAL.search(text)) and not any(map(_LIKE_A_REFUSAL.search, given))
