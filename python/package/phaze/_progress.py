"""How far a search is, shown by tqdm where it is installed, else by a line, or told to a callable."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, NamedTuple, Optional, Union


class Progress(NamedTuple):
    """How far a search is."""

    #: Which part of it runs: models and a size of memory.
    what: str
    #: Designs of which the bound is known, and how many there are.
    bounded: int
    designs: int
    #: Designs that were evaluated, and how many remain at the most (None before the first).
    evaluated: int
    left: Optional[int]
    #: Since the start.
    seconds: float


Teller = Callable[[str, int, int, int, Optional[int]], None]


class Shown:
    """Tells progress while a search runs; a context that takes the line away at its end."""

    def __init__(self, progress: Union[bool, Callable[[Progress], Any]]) -> None:
        self._start = time.monotonic()
        self._bar: Any = None
        self._what = ""
        self._line = False
        self.tell: Optional[Teller] = None
        if not callable(progress) and not isinstance(progress, bool):
            raise ValueError(f"`progress = {progress!r}` is neither true, false nor a function; give one of them")
        if callable(progress):
            asked = progress

            def tell(what: str, bounded: int, designs: int, evaluated: int, left: Optional[int]) -> None:
                asked(Progress(what, bounded, designs, evaluated, left, time.monotonic() - self._start))

            self.tell = tell
        elif progress:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
            except ImportError:
                self.tell = self._tell_line
            else:
                self._tqdm = tqdm
                self.tell = self._tell_bar

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._line:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _tell_bar(self, what: str, bounded: int, designs: int, evaluated: int, left: Optional[int]) -> None:
        done, total = (bounded, designs) if left is None else (evaluated, evaluated + left)
        if self._bar is None or self._what != what:
            if self._bar is not None:
                self._bar.close()
            self._what, self._bar = what, self._tqdm(total=total or None, desc=what, unit="design")
        self._bar.total = total or None
        self._bar.n = done
        # Where nothing is counted yet, what runs and since when is all there is to say.
        self._bar.bar_format = None if total else "{desc}: {elapsed}"
        self._bar.refresh()

    def _tell_line(self, what: str, bounded: int, designs: int, evaluated: int, left: Optional[int]) -> None:
        if left is not None:
            said = f": {evaluated} evaluated, at most {left} left"
        else:
            said = f": {bounded} of {designs} designs bounded" if designs else ""
        sys.stderr.write(f"\r\x1b[K{what}{said}, {time.monotonic() - self._start:.0f} s")
        sys.stderr.flush()
        self._line = True

