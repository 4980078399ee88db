"""The workflow package and the server package that it reuses, imported from where the images get them."""

import sys
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(IMAGES / "software"), str(IMAGES / "mimo")]
