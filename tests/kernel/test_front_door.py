"""What plugins import of agenthost is named once, and found."""

from __future__ import annotations

from pathlib import Path

import agenthost


def test_every_name_of_the_stub_is_there() -> None:
    assert len(agenthost.__all__) > 150
    for name in agenthost.__all__:
        assert getattr(agenthost, name) is not None
    assert set(agenthost.__all__) <= set(dir(agenthost))


def test_no_name_is_a_modules_too() -> None:
    folder = Path(agenthost.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    # Importing a module of this name would put it where the name was looked for.
    assert not modules & set(agenthost.__all__)
