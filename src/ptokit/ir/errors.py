"""What the text room raises: each carries its findings."""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.errors import PtoIndexError, PtoValueError
from ptokit.findings import Finding


class _WithFindings(PtoValueError):  # noqa: N818 - what it is the base of
    """An error whose reasons are findings."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))

    def __reduce__(self) -> tuple[type[_WithFindings], tuple[list[Finding]]]:
        return type(self), (self.findings,)


class ParseError(_WithFindings):
    """The text cannot be read; `findings` say where and why.

    A finding's `where` is the place of the token, `facts["line_text"]` the line and `facts["length"]` how many
    characters of it are meant.
    """


class ConvertError(_WithFindings):
    """The form that was asked for cannot say what the module holds; `findings` say what."""


class RunError(_WithFindings):
    """The module cannot be executed, or not past some op; `findings` say where and why."""


class WrongProgramError(PtoValueError):
    """The program itself is wrong at this place, with the values that it has there: no target could go on."""


class OutsideViewError(WrongProgramError, PtoIndexError):
    """A part reaches out of its view, with the values that it has there."""
