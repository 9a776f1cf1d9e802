"""Forms that the rules of Czech make difficult, each written out by hand."""

import pytest

from pipeline.sample import lexicon
from pipeline.sample.czech import (
    Agreement,
    Verb,
    adjective,
    decline,
    numeral,
    place_clitics,
    prepositional,
)
from pipeline.sample.frames.shared import BE
from pipeline.sample.grammar import czech_np
from pipeline.sample.lexicon import NP, noun


@pytest.mark.parametrize(
    ("lemma", "singular", "plural"),
    [
        ("kniha", "kniha knihy knize knihu knize knihou",
         "knihy knih knihám knihy knihách knihami"),
        ("kočka", "kočka kočky kočce kočku kočce kočkou",
         "kočky koček kočkám kočky kočkách kočkami"),
        ("pes", "pes psa psovi psa psovi psem", "psi psů psům psy psech psy"),
        ("pták", "pták ptáka ptákovi ptáka ptákovi ptákem",
         "ptáci ptáků ptákům ptáky ptácích ptáky"),
        ("kůň", "kůň koně koni koně koni koněm", "koně koní koním koně koních koni"),
        ("stůl", "stůl stolu stolu stůl stole stolem", "stoly stolů stolům stoly stolech stoly"),
        ("nůž", "nůž nože noži nůž noži nožem", "nože nožů nožům nože nožích noži"),
        ("vlak", "vlak vlaku vlaku vlak vlaku vlakem", "vlaky vlaků vlakům vlaky vlacích vlaky"),
        ("láhev", "láhev lahve lahvi láhev lahvi lahví",
         "lahve lahví lahvím lahve lahvích lahvemi"),
        ("báseň", "báseň básně básni báseň básni básní",
         "básně básní básním básně básních básněmi"),
        ("jablko", "jablko jablka jablku jablko jablku jablkem",
         "jablka jablek jablkům jablka jablkách jablky"),
        ("okno", "okno okna oknu okno okně oknem", "okna oken oknům okna oknech okny"),
        ("muzeum", "muzeum muzea muzeu muzeum muzeu muzeem",
         "muzea muzeí muzeím muzea muzeích muzei"),
        ("kotě", "kotě kotěte kotěti kotě kotěti kotětem",
         "koťata koťat koťatům koťata koťatech koťaty"),
        ("kolega", "kolega kolegy kolegovi kolegu kolegovi kolegou",
         "kolegové kolegů kolegům kolegy kolezích kolegy"),
        ("dcera", "dcera dcery dceři dceru dceři dcerou",
         "dcery dcer dcerám dcery dcerách dcerami"),
        ("snídaně", "snídaně snídaně snídani snídani snídani snídaní",
         "snídaně snídaní snídaním snídaně snídaních snídaněmi"),
    ],
)  # fmt: skip
def test_declension(lemma, singular, plural):
    forms = noun(lemma).forms
    cases = ("nom", "gen", "dat", "acc", "loc", "ins")
    assert [forms[case, False] for case in cases] == singular.split()
    assert [forms[case, True] for case in cases] == plural.split()


def test_an_exception_overrides_the_rule():
    forms = decline("sestra", "žena", {"dat": "sestře"})
    assert (forms["dat", False], forms["gen", False]) == ("sestře", "sestry")


@pytest.mark.parametrize(
    ("lemma", "case", "agreement", "form"),
    [
        ("nový", "acc", Agreement("ma"), "nového"),
        ("nový", "acc", Agreement("mi"), "nový"),
        ("nový", "nom", Agreement("ma", True), "noví"),
        ("nový", "nom", Agreement("n", True), "nová"),
        ("drahý", "nom", Agreement("ma", True), "drazí"),
        ("dobrý", "nom", Agreement("ma", True), "dobří"),
        ("anglický", "nom", Agreement("ma", True), "angličtí"),
        ("hezký", "nom", Agreement("ma", True), "hezcí"),
        ("tichý", "nom", Agreement("ma", True), "tiší"),
        ("moderní", "gen", Agreement("f"), "moderní"),
        ("moderní", "ins", Agreement("mi"), "moderním"),
    ],
)
def test_adjectives(lemma, case, agreement, form):
    assert adjective(lemma, case, agreement) == form


def test_participles_agree():
    found = Verb.parse("najít najd:e našel/našl")
    agreements = [Agreement("ma"), Agreement("f"), Agreement("n"), Agreement("ma", True),
                  Agreement("f", True), Agreement("mi", True), Agreement("n", True)]  # fmt: skip
    assert [found.past(a) for a in agreements] == [
        "našel", "našla", "našlo", "našli", "našly", "našly", "našla",
    ]  # fmt: skip
    assert found.past(Agreement("f"), negated=True) == "nenašla"


def test_present_tense():
    persons = [Agreement("ma", plural, person) for plural in (False, True) for person in (1, 2, 3)]
    bake = Verb.parse("péct peč:e pekl")
    expected = ["peču", "pečeš", "peče", "pečeme", "pečete", "pečou"]
    assert [bake.finite(p) for p in persons] == expected
    assert BE.imperfective is not None
    assert BE.imperfective.finite(Agreement("f"), negated=True) == "není"
    assert BE.imperfective.finite(Agreement("f", True), negated=True) == "nejsou"


@pytest.mark.parametrize(
    ("constituents", "clitics", "clause"),
    [
        (["Petr", "", "koupil", "dům"], [], "Petr koupil dům"),
        (["", "půjčil", "kolo"], ["si", "jsem"], "půjčil jsem si kolo"),
        (["včera", "dal", "knihu"], ["mi", "jsi"], "včera jsi mi dal knihu"),
        (["líbí", "šaty"], ["mi", "se"], "líbí se mi šaty"),
        (["proč", "půjčil", "kolo"], ["si", "jsi"], "proč sis půjčil kolo"),
        (["proč", "vrátil"], ["se", "jsi"], "proč ses vrátil"),
        (["měli", "půjčit"], ["bychom", "si"], "měli bychom si půjčit"),
    ],
)
def test_clitics_stand_second_in_their_order(constituents, clitics, clause):
    assert place_clitics(constituents, clitics) == clause


def test_prepositions_are_vocalised():
    phrases = ["sestrou", "synem", "psem", "Zuzanou", "bratrem", "Petrem", "mým otcem"]
    assert [prepositional("s", p).split()[0] for p in phrases] == ["se"] * 4 + ["s"] * 3
    assert prepositional("na", "stole") == "na stole"


@pytest.mark.parametrize(
    ("lemma", "count", "phrase"),
    [("kniha", 2, "dvě knihy"), ("klíč", 2, "dva klíče"), ("jablko", 2, "dvě jablka"),
     ("kniha", 4, "čtyři knihy"), ("kniha", 5, "pět knih"), ("klíč", 8, "osm klíčů")],
)  # fmt: skip
def test_counted_things(lemma, count, phrase):
    counted = NP(noun(lemma), plural=True, count=count)
    assert czech_np(counted, "nom") == phrase
    assert counted.agreement == (
        Agreement("n") if count >= 5 else Agreement(noun(lemma).gender, True)
    )
    assert numeral(5, "f") == "pět"


@pytest.mark.parametrize(
    ("lemma", "possessive", "case", "phrase"),
    [
        ("bratr", "můj", "acc", "mého bratra"),
        ("sestra", "můj", "acc", "moji sestru"),
        ("sestra", "můj", "ins", "mou sestrou"),
        ("rodiče", "můj", "nom", "moji rodiče"),
        ("rodiče", "náš", "ins", "našimi rodiči"),
        ("babička", "náš", "dat", "naší babičce"),
        ("strýc", "její", "dat", "jejímu strýci"),
        ("teta", "jeho", "gen", "jeho tety"),
    ],
)
def test_possessives(lemma, possessive, case, phrase):
    assert czech_np(NP(noun(lemma), possessive=possessive), case) == phrase


def test_several_hundred_lemmas():
    entries = [
        *lexicon.nouns(), *lexicon.adjectives(), *lexicon.actions(), *lexicon.activities(),
        *lexicon.moves(), *lexicon.times(), *lexicon.places(),
    ]  # fmt: skip
    assert len(entries) > 400
    lemmas = [n.lemma for n in lexicon.nouns()]
    assert len(lemmas) == len(set(lemmas))
