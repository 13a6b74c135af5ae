"""Code shared by the bindings nethack and minihack, which both use nle."""
