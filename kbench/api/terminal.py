"""The terminal: what others wrote reaches it as text, never as a command to it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kbench.messages import printable_lines


class PrintableConsole(Console):
    """A console that replaces the control characters of texts; its own styles stay."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object as segments of printable text."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control is None and not text.isprintable():
                segment = Segment(printable_lines(text), style)
            yield segment
