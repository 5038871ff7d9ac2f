"""The animal that docs/worlds.md has to paste."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "worlds.md"
LYNX = re.search(r"cat > lynx.py <<'END'\n(.*?)END\n", DOCS.read_text(), re.DOTALL)[1]
