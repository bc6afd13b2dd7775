"""Escaped SVG elements, and the width of labels."""

import textwrap
import unicodedata
from collections.abc import Sequence
from html import escape as escaped

from kbench.messages import printable


def escape(text: str) -> str:
    """Write text as markup; characters that are not printable are replaced."""
    return escaped(printable(text, None))


def element(tag: str, *children: str, **attributes: object) -> str:
    """Write an element: `children` are markup, numbers are rounded to a hundredth.

    `class_` stands for class, other underscores for hyphens.

    >>> element("circle", cx=1.23456, class_="dot")
    '<circle cx="1.23" class="dot"/>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>" if children else f"<{tag}{written}/>"


def _value(value: object) -> str:
    return (
        f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else escape(str(value))
    )


def text(content: str, x: float, y: float, **attributes: object) -> str:
    """Return a text element, escaped."""
    return element("text", escape(content), x=float(x), y=float(y), **attributes)


def estimate_width(content: str, size: float = 13.0) -> float:
    """Estimate the width of a label at a font size, rather too wide than too narrow.

    >>> estimate_width("iiii") < estimate_width("WWWW") < estimate_width("\N{SNAKE}" * 4)
    True
    """
    return size * sum(_em(sign) for sign in content)


def _em(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in "WF" or ord(sign) > 0xFFFF:
        return 1.3
    if sign in "ijlI.,:;'|!()[] ":
        return 0.42
    return 0.95 if sign in "mwMW@%" else 0.75 if sign.isupper() else 0.62


def wrap_name(content: str, longest: int) -> list[str]:
    """Break a name into lines, at spaces if it has any.

    >>> wrap_name("a fairly long name", 10)
    ['a fairly', 'long name']
    """
    return textwrap.wrap(content, longest, break_on_hyphens=False) or [content]


def document(
    width: float, height: float, parts: Sequence[str], label: str, role: str = "img", **more: object
) -> str:
    """Return a chart made of its parts; its role is "group" if parts can be pressed."""
    return element(
        "svg",
        element("title", escape(label)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role=role,
        **more,
    )
