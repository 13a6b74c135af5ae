"""What the bindings nethack and minihack share: both are games of nle."""
