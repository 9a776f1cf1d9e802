"""The licences that Hugging Face's Hub knows by name."""

import re

_LIST = """
afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m
bigscience-bloom-rail-1.0 bigscience-openrail-m bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear
bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0
cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0
cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0
creativeml-openrail-m deepfloyd-if-license ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2
fair-noncommercial-research-license gemma gfdl gpl gpl-2.0 gpl-3.0 grok2-community h-research
intel-research isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr llama2 llama3 llama3.1 llama3.2 llama3.3 llama4
lppl-1.3c mit mpl-2.0 ms-pl ncsa odbl odc-by ofl-1.1 openmdw-1.0 openrail openrail++ osl-3.0 pddl
postgresql unknown unlicense wtfpl zlib
"""

# https://huggingface.co/docs/hub/repositories-licenses, as of February 2026, without `other`, which
# stands for all licences that are not on the list.
HUB_LICENSES = frozenset(_LIST.split())


def license_name(license: str) -> str:
    """The name of a licence in the form of the Hub's names; empty without any letter or digit.

    >>> license_name("CC BY 4.0"), license_name("openrail++") in HUB_LICENSES
    ('cc-by-4.0', True)
    """
    return re.sub(r"[^a-z0-9.+]+", "-", license.lower()).strip("-.")


def license_metadata(license: str | None, link: str | None = None) -> dict[str, str]:
    """The keys of a card's metadata that name a licence, None if it is not known.

    Args:
        link: the address of the text of a licence that is not on the Hub's list, or its file.

    >>> license_metadata("mit"), license_metadata("CzEng: research only", "LICENSE")["license_link"]
    ({'license': 'mit'}, 'LICENSE')
    """
    name = license_name(license or "")
    if not name:
        return {"license": "unknown"}
    if name in HUB_LICENSES:
        return {"license": name}
    found = {"license": "other", "license_name": name}
    return found | ({"license_link": link} if link else {})
