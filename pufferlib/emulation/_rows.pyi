from typing import Any

from pufferlib.emulation.layout import Layout

class EmulatedRows:
    def _prepare(self, layout: Layout, actions: Layout, decoder: Any, num_rows: int, is_shared: bool) -> None: ...
