"""What these tests read besides the pages: the site's own extension, and the red team's corpus."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT / "tests" / "red_team")]
