"""`ptokit lsp`: the language server, over stdin and stdout."""

from __future__ import annotations

import click

from ptokit.errors import PtoError

NEEDS = ("pygls", "lsprotocol", "xdsl")


@click.command("lsp", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Serve an editor: what is wrong as you type, what a word means, what may follow.

    It speaks the Language Server Protocol over stdin and stdout; an editor starts it for files that end in .pto or
    .mlir. It needs the extra: pip install 'ptokit[lsp]'.

    \b
    Examples:
      ptokit lsp
      nvim:   vim.lsp.start({ name = "ptokit", cmd = { "ptokit", "lsp" } })
      helix:  [language-server.ptokit]  command = "ptokit"  args = ["lsp"]
    """
    try:
        from ptokit.lsp.server import make_server
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in NEEDS:
            raise
        raise PtoError(
            f"the language server needs {missing.name}; install it with: pip install 'ptokit[lsp]'"
        ) from None
    make_server().start_io()
