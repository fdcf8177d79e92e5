"""Texts for the tests of check: one kernel with holes to fill, and what is found in it."""

from __future__ import annotations

from ptokit.findings import Finding, Severity
from ptokit.ir import parse

TILE, INDEX, VIEW = (
    "!pto.tile_buf<vec, 16x64xf32>",
    "!pto.tile_buf<vec, 1x16xi32>",
    "!pto.partition_tensor_view<1024x64xf32>",
)

SPELT = {"GRADS": "!pto.partition_tensor_view<16x64xf32>", "ROWS": "!pto.partition_tensor_view<1x16xi32>"}
SPELT |= {"TILE": TILE, "INDEX": INDEX, "TABLE": VIEW}


def spelt(text: str) -> str:
    """The text with its types in full."""
    for name, full in SPELT.items():
        text = text.replace(name, full)
    return text


KERNEL = spelt("""\
func.func @update(%mem: TABLE, %grads: GRADS, %rows: ROWS) {
  %g = pto.alloc_tile : TILE
  %i = pto.alloc_tile : INDEX
  pto.tload ins(%grads : GRADS) outs(%g : TILE)
  pto.tload ins(%rows : ROWS) outs(%i : INDEX)
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.mscatter ins(%g, %i : TILE, INDEX) outs(%mem : TABLE) {coalesce = #pto<coalesce row>}
  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  return
}
""")
"""Clean on a2a3 and a5."""


def without(text: str, *words: str) -> str:
    """The text without the lines that hold one of the words."""
    return "".join(line for line in text.splitlines(keepends=True) if not any(word in line for word in words))


def scatter(
    tile: str = TILE,
    index: str = INDEX,
    view: str = VIEW,
    attributes: str = "coalesce = #pto<coalesce row>",
    arch: str = "",
    given: str = "",
) -> str:
    """One mscatter in a function."""
    head = f'module attributes {{pto.target_arch = "{arch}"}} ' if arch else "module "
    told = f" {{{attributes}}}" if attributes else ""
    return (
        f"{head}{{\nfunc.func private @f(%s: {tile}, %i: {index}, %m: {view}{given}) {{\n"
        f"  pto.mscatter ins(%s, %i : {tile}, {index}) outs(%m : {view}){told}\n  return\n}}\n}}\n"
    )


def gather(
    tile: str = TILE,
    index: str = INDEX,
    view: str = VIEW,
    attributes: str = "coalesce = #pto<coalesce row>",
    arch: str = "",
) -> str:
    """One mgather in a function."""
    head = f'module attributes {{pto.target_arch = "{arch}"}} ' if arch else "module "
    told = f" {{{attributes}}}" if attributes else ""
    return (
        f"{head}{{\nfunc.func private @f(%d: {tile}, %i: {index}, %m: {view}) {{\n"
        f"  pto.mgather ins(%m, %i : {view}, {index}) outs(%d : {tile}){told}\n  return\n}}\n}}\n"
    )


def verified(text: str, target: str = "a5") -> list[Finding]:
    """Errors and warnings of verify."""
    return loud(parse(text).verify(target))


def loud(findings: list[Finding]) -> list[Finding]:
    """Errors and warnings."""
    return [one for one in findings if one.severity is not Severity.NOTE]


def ids(findings: list[Finding]) -> list[str]:
    """The ids of errors and warnings, in order."""
    return [one.id for one in loud(findings)]


def only(findings: list[Finding]) -> Finding:
    """The one error or warning."""
    (found,) = loud(findings)
    return found


def token(finding: Finding) -> str:
    """What a finding points at."""
    assert finding.where is not None
    start = finding.where.column - finding.facts.get("line_text_from", 1)
    return str(finding.facts["line_text"][start : start + finding.facts["length"]])
