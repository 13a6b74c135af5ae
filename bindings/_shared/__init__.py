"""Code shared by the bindings: creators, checks of options, adapters of older interfaces."""
