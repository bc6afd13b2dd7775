"""Names that look like others are rejected, and honest ones are not."""

import pytest

from kbench.errors import BundleError
from kbench_sharing.untrusted_text import check_author, check_label


@pytest.mark.parametrize(
    "name",
    ["", "Ada Lovelace", "José Ángel Núñez", "Łukasz Žižek", "Bob [bold] <b@x.org>", "O'Hara-Weiß"],
)
def test_an_author_has_latin_letters(name):
    check_author(name)


@pytest.mark.parametrize(
    "name",
    [
        "Ada\ufe0f",  # a variation selector
        "A\u034fda",  # a grapheme joiner
        "Ada\u3164",  # a filler of Hangul
        "Ada\u2800",  # an empty pattern of Braille
        "Ada\U000e0101",
        "\u0430",  # Cyrillic a
        "\u0410\u0414\u0410",  # Cyrillic throughout
        "\u13aa\u13a0\u13aa",  # Cherokee
        "Ad\u0251",  # Latin alpha
        "Ad\u0131",  # i without a dot
        "\u1d00da",  # a small capital
        "Ada\u0332",  # a line below
        "Ad\u02bca",  # an apostrophe that is a letter
        "Ada\u00a0Lovelace",
        "Ada\u2010B",
    ],
    ids=ascii,
)
def test_an_author_does_not_look_like_another(name):
    with pytest.raises(BundleError, match="the author"):
        check_author(name)


@pytest.mark.parametrize("label", ["iris", "γ = 1", "χ² additive", "Übergröße", "данные", "σφάλμα"])
def test_a_label_may_have_letters_of_other_scripts(label):
    check_label(label, "dataset")


@pytest.mark.parametrize(
    "label",
    ["iris\ufe0f", "\u3164", "ri\u034fdge", "\u0441\u043e\u0440", "\u03c1\u03bf\u03c1"],
    ids=ascii,
)
def test_a_label_does_not_look_like_another(label):
    with pytest.raises(BundleError, match=r"invisible|look like Latin letters"):
        check_label(label, "dataset")
