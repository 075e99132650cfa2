"""The daemon, with an error that nobody has foreseen wherever a model is asked."""

import runpy
from typing import Any

from agenthost_models.models import RoutedModels


def _falls(*_: Any) -> Any:
    raise RuntimeError("not an error of ours")


RoutedModels.stream = _falls  # type: ignore[assignment,method-assign]  # reason: that is the fault

if __name__ == "__main__":
    runpy.run_module("agenthost", run_name="__main__", alter_sys=True)
