"""The simulated vector core: memory with shadows, pipes and flags, the instructions, launch."""
