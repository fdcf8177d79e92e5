"""Ranks: TSCATTER, TGATHER and their family, over processes of this machine or over MPI."""
