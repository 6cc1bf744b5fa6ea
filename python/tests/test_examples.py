"""Every example of the documentation strings is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import phaze
import pytest

MODULES = ["phaze", *(f"phaze.{found.name}" for found in pkgutil.iter_modules(phaze.__path__) if found.name != "_phaze")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_answer_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    found = doctest.testmod(module, extraglobs={"phaze": phaze}, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_every_verb_has_an_example_or_needs_files() -> None:
    without = {name for name in phaze.__all__ if callable(getattr(phaze, name)) and name[0].islower() and ">>>" not in (getattr(phaze, name).__doc__ or "")}
    assert without == {"calibrate", "merge", "validate"}
