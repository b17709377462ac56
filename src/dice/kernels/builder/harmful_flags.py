"""Flags that can do harm, in families by what they could do; any other flag that PyTorch's own build takes is taken.

A candidate's text may include any file that its compiler sees, and compilers run in a jail with nothing of worth in it.
What is left is to load code into a compiler, to call other programs, to write files, and to change how the object is
linked, so that launches are no longer counted. A flag of an unknown form is refused as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class FlagRefused(Exception):
    """A flag that no candidate may use; the message names it and says why."""

    def __init__(self, flag: str, why: str) -> None:
        super().__init__(f"flag '{flag[:80]}' is refused: it {why}")


@dataclass(frozen=True)
class Family:
    """Flags with one kind of harm. `form` matches their beginnings."""

    why: str
    form: re.Pattern[str]


def _family(why: str, form: str) -> Family:
    return Family(why, re.compile(form, re.VERBOSE))


HARMFUL = (
    _family("reads further flags from a file", r"@ | --?optf | --options-file"),
    _family(
        "loads code into the compiler, or calls another program",
        r"""-B | --prefix | --?specs | -wrapper | -fplugin | -fmodule | -fself-test | -fuse-ld=(?!(?:bfd|gold|lld|mold)$)
        | -ccbin | --compiler-bindir | --?run\b | --?run-args | --?arbin | --archiver-binary | --?ldir | --libdevice
        | --?nvvm | --?target | --?input-drive | --?sysroot | -isysroot | --?iprefix | --?dont-use-profile | -noprof""",
    ),
    _family(
        "chooses files that are written or read besides the sources",
        r"""-o | --output | -M(?!(?:M?D|P)$) | --(?:write-)?(?:user-)?dependenc | -fdump | --?dump | --?aux
        | -f(?:auto-)?profile(?!-prefix-map) | -fbranch-prob | -ftest-coverage | --coverage | -fopt-info | -fsave-opt
        | -fdiagnostics-(?:format|add-output|set-output) | --?time\b | --?fdevice-time-trace | --?keep-dir
        | -fcallgraph-info | --?(?:include|imacros|pre-include)[= ]?(?:/|.*\.\.) | --?(?:include|imacros|pre-include)$""",
    ),
    _family(
        "makes something else than an object",
        r"-[ES]$ | -fsyntax-only | --?(?:dryrun|lib|link|dlink|device-link|ptx|cubin|fatbin|cuda|clean\S*|preprocess)$",
    ),
    _family(
        "changes how the object is linked", r"-T | --?defsym | --?wrap | -Wl,-{0,2}plugin | -Xlinker[= ]-{0,2}plugin"
    ),
    _family(
        "gives a tool of the compiler words past this list",
        r"-X(?:assembler|preprocessor|nvlink|cicc|archiver)\b | --for-(?:linker|assembler) | -W[ap],",
    ),
)
"""What is refused whatever its value."""

_WITH_ANY_VALUE = re.compile(r"-[DU]|-(?:I|L|isystem|iquote|idirafter)|-f(?:file|debug|macro|profile)-prefix-map=")
"""Definitions, search folders and names in messages: the source itself could do all that they do."""
_KNOWN_FORM = re.compile(
    r"-[fmgWO][\w+=.,:-]*(?: \w[\w-]*)?$|-[A-Za-z]$|-l:?[\w.+-]+$|--?[a-z][\w-]*(?:[= ][\w.,+:=-]*)?$"
)
_WORDS_OF_THE_LINKER = re.compile(
    r"""--(?:no-)?(?:as-needed|undefined|whole-archive|gc-sections|copy-dt-needed-entries|allow-shlib-undefined
    |export-dynamic|relax|demangle|fatal-warnings|add-needed) | --(?:enable|disable)-new-dtags | --(?:start|end)-group
    | --strip-(?:all|debug) | --build-id(?:=\w+)? | --hash-style=\w+ | --warn-[\w-]+ | --sort-common
    | -(?:[sSxXE]|O\d|z,\w+|Bstatic|Bdynamic|Bsymbolic(?:-functions)?|l[\w.+-]+) | --?rpath(?:-link)?[,=][\w./+ -]+
    | --?soname[,=][\w.+-]+""",
    re.VERBOSE,
)


def harm(word: str) -> str | None:
    """What a flag could do, to follow "it"; None for a flag that stock may have. A separate value stands behind a space.

    Words for the linker (`-Wl,`) are read by `steers_linker`, where something is linked with them.
    """
    for family in HARMFUL:
        if family.form.match(word):
            return family.why
    if not word.startswith("-"):
        return "is no flag but a file or a value"
    if _WITH_ANY_VALUE.match(word) or _KNOWN_FORM.match(word):
        return None
    return "has a form that is not known to be harmless"


def steers_linker(word: str) -> bool:
    """Whether `-Wl,...` or `-Xlinker ...` has a word that is not known to be harmless: scripts, plugins, other symbols."""
    text = re.sub(r"^(?:-Wl,|-Xlinker[= ])", "", word)
    while text:
        match = _WORDS_OF_THE_LINKER.match(text)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            return True
        text = text[match.end() + 1 :]
    return False
