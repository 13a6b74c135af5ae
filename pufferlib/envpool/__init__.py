"""EnvPool's interface: ``import pufferlib.envpool as envpool``."""
