"""Every example of a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import ptokit

MODULES = [m.name for m in pkgutil.walk_packages(ptokit.__path__, "ptokit.") if m.name != "ptokit.__main__"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"np": np}, raise_on_error=False)
    assert not failed
