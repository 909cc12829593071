"""The README's pictures, taken from a running demo: `make pictures`, a while after `make run`.

Nothing is arranged: what is on the pictures is what the demo showed at that moment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

from tests.e2e.browser import PAGES, Visit, chromium

SIZE = {"width": 1440, "height": 900}
CHARTS_MS = 2_500  # charts draw after the script has ended


def take(base: str, folder: Path, names: tuple[str, ...]) -> None:
    """One picture of the upper part of each page; says which pages showed an error box."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        visit = Visit(browser, base)
        visit.page.set_viewport_size(SIZE)  # type: ignore[arg-type]  # a TypedDict of the driver
        for name in names:
            visit.open("" if name == PAGES[0] else name)
            visit.page.wait_for_timeout(CHARTS_MS)
            visit.settle()  # what refreshes by itself is pale meanwhile
            visit.page.screenshot(path=folder / f"{name}.png")
            _made_small(folder / f"{name}.png")
            sys.stderr.write(f"{name}.png {visit.error_boxes() or ''}\n")


def _made_small(path: Path) -> None:
    """The same picture in fewer bytes; a palette would make two engines one colour."""
    with Image.open(path) as picture:
        picture.convert("RGB").save(path, optimize=True)


if __name__ == "__main__":
    take(sys.argv[1], Path(sys.argv[2]), tuple(sys.argv[3:]) or PAGES)
