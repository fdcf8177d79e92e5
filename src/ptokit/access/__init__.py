"""What MSCATTER and MGATHER mean: the rules, the plan, the conflicts, and the commit to memory."""
