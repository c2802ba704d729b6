"""Negation of a sentence by rules, without a parser: the soft negatives of SNCSE.

The published program uses a dependency parser. Here a word's form alone is looked at: the first
auxiliary verb is negated; else the first word that has the form of a finite verb; else the sentence
as a whole.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AUXILIARIES = _words(
    "am is are was were can could will would shall should may might must do does did"
)
_HAVE = {"have": "do not have", "has": "does not have", "had": "did not have"}
_PARTICIPLES = _words(
    "become begun bought brought built caught come cut done felt fought found gone had heard held "
    "kept led left lost made meant met paid put read run said sat sent set sold spent stood sung "
    "swum taught thought told understood won"
)
"""Participles that do not end in -ed or -en; those in -wn are known by their end."""

_CONTRACTED = {"can't": "can", "cannot": "can", "won't": "will", "shan't": "shall"}

_PAST = dict(
    pair.split(":")
    for pair in _words(
        "ate:eat became:become began:begin bit:bite blew:blow bought:buy broke:break brought:bring "
        "built:build came:come caught:catch chose:choose drank:drink drew:draw drove:drive "
        "fell:fall felt:feel fled:flee flew:fly forgot:forget fought:fight found:find gave:give "
        "got:get grew:grow heard:hear held:hold hid:hide kept:keep knew:know leapt:leap led:lead "
        "lost:lose made:make meant:mean met:meet paid:pay ran:run rode:ride said:say sang:sing "
        "sat:sit saw:see sent:send slept:sleep sold:sell spent:spend spoke:speak stole:steal "
        "stood:stand swam:swim taught:teach thought:think threw:throw told:tell took:take "
        "understood:understand went:go wept:weep won:win wore:wear wrote:write"
    )
)

_NOUN_FOLLOWS = _words(
    "a an the this that these those my your his her its our their of by in on at with for from to "
    "and or be been being became become becoming"
)
"""Words after which a word in -ed describes a noun, or is part of a passive."""
_SUBJECTS = frozenset(["he", "she", "it", "who", "which", "everyone", "nobody"])
"""Words after which a word in -s is a verb."""

_WORD = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
"""A word with the punctuation around it; the second group is the word alone."""
_NOT_VERBS = _words("shed sled bred hundred sacred naked")
_REGULAR = re.compile(r"[a-z]{2,}[^e\W]ed")
_WITH_E = re.compile(
    r".*([vcuz]|[^s]s|[^e]at|[^aeo]in|[^ao]i[dr]|[^e]ar|[^o]ur|um|[^n]g|ang|[bdgkpt]l|ud"
    r"|[mnu]ot|(?<!pi)vot)"
    r"|[^aeiou]*[aeiou][^aeiouwxy]"
)
"""Stems of verbs whose base form ends in e, by their last letters or as one short syllable."""


def negate(sentence: str, *, keeping: bool = False) -> str:
    """The sentence with its meaning reversed, words separated by single spaces.

    A `not` in it is removed, as in the published program of SNCSE; so is an `n't`, unless
    `keeping`: then a `not` is put before it, which is what that program does.
    """
    words = sentence.split()
    bare = [_WORD.sub(r"\2", word).lower() for word in words]
    if "not" in bare:
        del words[bare.index("not")]
        return " ".join(words)
    return (
        _without_contraction(words, bare, keeping=keeping)
        or _after_auxiliary(words, bare)
        or _with_do(words, bare)
        or " ".join(["Not", *words])
    )


def _replace_word(words: list[str], place: int, new: str) -> str:
    """The sentence with another word at `place`, whose punctuation is kept."""
    word = _WORD.sub(lambda match: match[1] + new + match[3], words[place])
    return " ".join([*words[:place], word, *words[place + 1 :]])


def _without_contraction(words: list[str], bare: list[str], *, keeping: bool) -> str:
    for place, word in enumerate(bare):
        if keeping and word.endswith("n't"):
            return _replace_word(words, place, word.removesuffix("n't") + " not n't")
        if word in _CONTRACTED or word.endswith("n't"):
            return _replace_word(words, place, _CONTRACTED.get(word, word.removesuffix("n't")))
    return ""


def _after_auxiliary(words: list[str], bare: list[str]) -> str:
    for place, word in enumerate(bare):
        following = next((later for later in bare[place + 1 :] if not later.endswith("ly")), "")
        if word in _AUXILIARIES or (
            word in _HAVE and (following in _PARTICIPLES or following.endswith(("ed", "en", "wn")))
        ):
            return " ".join([*words[: place + 1], "not", *words[place + 1 :]])
    return ""


def _with_do(words: list[str], bare: list[str]) -> str:
    for place, (before, word) in enumerate(zip(["", *bare], bare, strict=False)):
        if negated := _HAVE.get(word) or (place and _negate_verb(word, before)):
            return _replace_word(words, place, negated)
    return ""


def _negate_verb(word: str, before: str) -> str:
    """`word` with a form of `do` and `not`; empty if it does not have the form of a verb."""
    if word in _PAST:
        return f"did not {_PAST[word]}"
    if before in _SUBJECTS and re.fullmatch(r"[a-z]+[^s\W]s", word):
        y_for_ies = re.sub(r"ies$", "y", word)
        return f"does not {re.sub(r'(?<=ss|sh|ch|.x|zz|go|do)es$|s$', '', y_for_ies)}"
    if before in _NOUN_FOLLOWS or word in _NOT_VERBS or not _REGULAR.fullmatch(word):
        return ""
    return f"did not {_past_base(word.removesuffix('ed'))}"


def _past_base(stem: str) -> str:
    """The base form of a regular verb from its past form without -ed."""
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if re.search(r"([bdgkmnprtv])\1$", stem):
        return stem[:-1]
    return stem + "e" if _WITH_E.fullmatch(stem) else stem
