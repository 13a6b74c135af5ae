"""Shared parts of the bindings nethack and minihack, which both play nle."""
