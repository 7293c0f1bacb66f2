"""What every test may ask for: the shared recorded runs, where they are."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("SLUICE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the recorded runs exist only where the runs are: every one has a twin on generated data."""
    if (SHARED / "data" / "runs").is_dir():
        return
    absent = [item for item in items if item.get_closest_marker("shared")]
    items[:] = [item for item in items if item not in absent]
    config.hook.pytest_deselected(items=absent)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the recorded runs, the public benchmark and the catalogue."""
    return SHARED / "data"
