"""A language server for the text forms: diagnostics, hover, completion. `ptokit lsp` speaks it over stdio.

Everything but `server` is plain functions of a text and a place in it.
"""
